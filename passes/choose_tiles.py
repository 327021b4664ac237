"""Decide tile, order and buffers of every kernel; write them down with bytes and what bound them.

The decision is made by `analysis/tile_choice.py` from the loops and operands of the kernel and the
module's `npu.target`; nothing is rewritten here. A kernel that already has a schedule keeps it, if
it is one for its loops, and one that the module's `npu.schedules` names takes it from there (see
`kernels/choices.py`). A kernel whose smallest tile exceeds a memory is an error with needed and
available bytes.

mode: `pipelined`; `serial`, with one buffer for everything; `untiled`, whole kernels as if memories
were infinite, in which case the schedule says so and no later check holds it to the capacities. On
a target whose sram is a cache there is one mode only, without order and buffers.

Before:
    func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d"}
After:
    func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d", npu.schedule = {
        tile = array<i64: 0, 8, 0, 2, 0>,     // parallel loops of the last op, 0: whole
        reduction_tile = array<i64: 0, 0, 16>, // reduction loops of the root, only if split
        order = array<i64: 3, 1, 0, 2, 4>,     // parallel loops, outermost first
        buffers = 2, acc_buffers = 1,          // of what is moved more than once; of accumulators
        sram_bytes = 148992, acc_bytes = 57344, // all buffers together
        cycles = 61440, bound = "matrix unit", parallel = false}}
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis.footprint import KernelShape
from mlir_npu.passes.analysis.tile_choice import MODES, Choice, DoesNotFit, choose_tile
from mlir_npu.passes.kernels.choices import SCHEDULES, kernel_text, key_of, take_choices
from mlir_npu.passes.kernels.describe import describe
from mlir_npu.passes.kernels.prerequisites import require_kernels
from mlir_npu.passes.kernels.schedule import SCHEDULE, check_against_loops, read_schedule
from mlir_npu.passes.kernels.walk import kernels, string, symbol
from mlir_npu.passes.registry import fail, register_pass

UNTILED = "untiled"


@dataclass(frozen=True)
class ChooseTilesOptions:
    mode: str = MODES[0]

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"mode must be {', '.join(MODES)}; got '{self.mode}'")


@register_pass("choose-tiles", ChooseTilesOptions)
def choose_tiles(module: ir.Operation, options: ChooseTilesOptions) -> None:
    require_kernels(module)
    choices = take_choices(module, SCHEDULES)
    if choices:
        _obey(kernels(module), choices)
    todo = [kernel for kernel in kernels(module) if SCHEDULE not in kernel.attributes]
    for kernel in kernels(module):
        if SCHEDULE in kernel.attributes:
            check_against_loops(kernel, read_schedule(kernel))
    if not todo:
        return
    target = target_of(module)
    for kernel in todo:
        kernel.attributes[SCHEDULE] = _schedule(kernel, target, options.mode)


def _obey(all_kernels: Sequence[ir.Operation], choices: Mapping[str, ir.Attribute]) -> None:
    for kernel in all_kernels:
        chosen = choices.get(key_of(kernel_text(kernel)))
        if chosen is not None and SCHEDULE not in kernel.attributes:
            kernel.attributes[SCHEDULE] = chosen


def is_untiled(kernel: ir.Operation) -> bool:
    """Whether the kernel was left whole on purpose and may exceed the memories."""
    if SCHEDULE not in kernel.attributes:
        return False
    schedule = ir.DictAttr(kernel.attributes[SCHEDULE])
    return "mode" in schedule and ir.StringAttr(schedule["mode"]).value == UNTILED


def _schedule(kernel: ir.Operation, target: Target, mode: str) -> ir.Attribute:
    try:
        shape = describe(kernel, target.vector.lanes)
    except ValueError as error:
        fail(kernel, f"kernel '{symbol(kernel)}' cannot be tiled: {error}")
    if shape is None or (not shape.accesses and not target.cached):
        return ir.DictAttr.get(_entries((), (), Choice((), False, 0, 0, "data movement")))
    try:
        choice = choose_tile(shape, target, mode)
    except DoesNotFit as error:
        kind = string(kernel, "npu.kernel")
        fail(kernel, f"{kind} kernel '{symbol(kernel)}' does not fit: {error}; run it on the host")
    return schedule_of(shape, choice, untiled=mode == UNTILED and not target.cached)


def schedule_of(shape: KernelShape, choice: Choice, *, untiled: bool = False) -> ir.DictAttr:
    """The attribute that says `choice`."""
    entries = _entries(*_relative_tile(shape, choice), choice)
    if choice.order is not None:
        # the attribute counts parallel loops only
        order = [shape.parallel.index(loop) for loop in choice.order]
        entries["order"] = ir.DenseI64ArrayAttr.get(order)
        entries["buffers"] = _integer(choice.buffers)
        entries["acc_buffers"] = _integer(choice.acc_buffers)
        entries["cycles"] = _integer(choice.cycles)
    if untiled:
        entries["mode"] = ir.StringAttr.get(UNTILED)
    return ir.DictAttr.get(entries)


def _relative_tile(shape: KernelShape, choice: Choice) -> tuple[list[int], list[int]]:
    """Tile sizes with 0 for whole loops: parallel loops, then reduction loops."""
    sizes = [0 if t == loop.extent else t for t, loop in zip(choice.tile, shape.loops)]
    return [sizes[i] for i in shape.parallel], [sizes[i] for i in shape.reductions]


def _entries(tile, reduction_tile, choice: Choice) -> dict[str, ir.Attribute]:
    entries = {
        "tile": ir.DenseI64ArrayAttr.get(list(tile)),
        "parallel": ir.BoolAttr.get(choice.parallel),
        "sram_bytes": _integer(choice.sram_bytes),
        "acc_bytes": _integer(choice.acc_bytes),
        "bound": ir.StringAttr.get(choice.bound),
    }
    if any(reduction_tile):
        entries["reduction_tile"] = ir.DenseI64ArrayAttr.get(list(reduction_tile))
    return entries


def _integer(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
