"""Turn npu ops into register-blocked vector code for a CPU.

A fill, a compute op and a drain on one accumulator tile become one micro-kernel whose accumulators
stay in registers from the fill to the drain's output; the accumulator tile is not touched any more.
Where that is not possible (the reduction is tiled, or memory is shared) each op works on memory.
Vector width and register count come from the module's target.

Before:
    npu.fill %acc; npu.conv2d %in, %w, %acc; npu.drain %acc, %bias, %out { region }
After:
    scf.for %k ... scf.for %y ... scf.for %x step MR {
      %r:N = scf.for %c ... iter_args(accumulators) { vector.load, vector.broadcast, vector.fma }
      region on %r; vector.store into %out }

Taps of a window that meet the padding of an image are left out: where the data lies is what the
move says that padded the tile. Small windows over channels, and convolutions that sum up few
channels, read the source of that move, which then goes away.

A lane that is alone behind the vectors of a block is summed along the reduction (`single_lane.py`),
and a narrower vector behind a full one loads its scalars itself (`own_loads.py`).
Where few tiles of pixels use a block of weights, the steps of the reduction prefetch the next one.

The result of `npu.dma_start` is complete where it stands, so waits disappear, and a token that
travels through loops and branches becomes a number that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis.register_tile import CpuVectors
from mlir_npu.passes.microkernels.accumulator_group import COMPUTE, AccumulatorGroup, find_group
from mlir_npu.passes.microkernels.contractions import (
    emit_batch_matmul,
    emit_conv2d,
    emit_matmul,
    without_padding,
)
from mlir_npu.passes.microkernels.elementwise import emit_eltwise, emit_fill
from mlir_npu.passes.microkernels.emit import shared_constants
from mlir_npu.passes.microkernels.moves import emit_dma
from mlir_npu.passes.microkernels.reductions import emit_reduce
from mlir_npu.passes.microkernels.tokens import retire_tokens
from mlir_npu.passes.microkernels.windows import (
    emit_depthwise_conv2d,
    emit_pool2d,
    with_padding,
)
from mlir_npu.passes.microkernels.winograd import emit_winograd_input, emit_winograd_output
from mlir_npu.passes.registry import NoOptions, fail, register_pass

_GROUPS: dict[str, Callable[[AccumulatorGroup, CpuVectors], None]] = {
    "npu.conv2d": emit_conv2d,
    "npu.matmul": emit_matmul,
    "npu.batch_matmul": emit_batch_matmul,
    "npu.depthwise_conv2d": emit_depthwise_conv2d,
    "npu.pool2d": emit_pool2d,
    "npu.reduce": emit_reduce,
    "npu.winograd_output": emit_winograd_output,
}
_SINGLE: dict[str, Callable[[ir.Operation, CpuVectors], None]] = {
    "npu.eltwise": emit_eltwise,
    "npu.drain": emit_eltwise,
    "npu.fill": emit_fill,
    "npu.dma_start": emit_dma,
    "npu.winograd_input": emit_winograd_input,
}
# Ops whose body is fixed: vector arithmetic of one float type, or of integers summed up in a wider.
_SUMS = frozenset(
    {
        "npu.conv2d",
        "npu.matmul",
        "npu.batch_matmul",
        "npu.depthwise_conv2d",
        "npu.pool2d",
        "npu.winograd_input",
        "npu.winograd_output",
    }
)
_ORDERING = ("npu.dma_wait", "npu.barrier")


@register_pass("convert-npu-to-vector")
def convert_npu_to_vector(module: ir.Operation, options: NoOptions) -> None:
    if not _npu_ops(module):
        return
    unit = _vectors_of(target_of(module))
    for op in _npu_ops(module):
        if op.name in _SUMS:
            _check_types(op)
    for op in [o for o in _npu_ops(module) if o.name in _ORDERING]:
        op.erase()
    retire_tokens(module)
    for op in [o for o in _npu_ops(module) if o.name in COMPUTE]:
        _convert_group(_without_padding(find_group(op), unit), unit)
    for op in _npu_ops(module):
        _convert_single(op, unit)
    _erase_dead_views(module)


def _without_padding(group: AccumulatorGroup, unit: CpuVectors) -> AccumulatorGroup:
    """The group with the move that pads its image, where its source is read instead."""
    if group.compute.name == "npu.conv2d":
        return without_padding(group, unit)
    return with_padding(group)


def _vectors_of(target: Target) -> CpuVectors:
    """A CPU's matrix unit is its vector unit: `macs_per_cell` is per lane."""
    multiplies_bytes = target.cached and target.matrix.macs_per_cell.i8 == 4
    return CpuVectors(target.vector.lanes, target.vector.registers, multiplies_bytes)


def _npu_ops(module: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("npu.") and op.name != "npu.yield":
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _check_types(op: ir.Operation) -> None:
    """The dialect has wider accumulators of floats too, CPU code for them there is not."""
    types = [o.type.element_type for o in op.operands if isinstance(o.type, ir.MemRefType)]
    if len(set(types)) == 1 or all(isinstance(type_, ir.IntegerType) for type_ in types):
        return
    held = ", ".join(str(type_) for type_ in types)
    fail(
        op,
        f"'{op.name}' on operands of {held} has no CPU code; it needs one float type for all, "
        "as in f32, f32, f32, or integers",
    )


def _convert_group(group: AccumulatorGroup, unit: CpuVectors) -> None:
    _at(group.last, lambda: _GROUPS[group.compute.name](group, unit))
    for op in (group.drain, group.compute, group.fill, group.padding):
        if op is not None:
            op.erase()


def _convert_single(op: ir.Operation, unit: CpuVectors) -> None:
    if op.name not in _SINGLE:
        fail(op, f"'{op.name}' has no CPU code")
    _at(op, lambda: _SINGLE[op.name](op, unit))
    op.erase()


def _at(op: ir.Operation, emit: Callable[[], None]) -> None:
    """Emit before `op`; what cannot be emitted is an error at `op`."""
    try:
        with ir.InsertionPoint(op), op.location, shared_constants():
            emit()
    except ValueError as error:
        fail(op, f"'{op.name}' cannot be lowered to vectors: {error}")


def _erase_dead_views(module: ir.Operation) -> None:
    """Accumulator tiles that live in registers leave a view without uses."""
    dead: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in ("memref.view", "memref.memory_space_cast", "memref.alloc"):
            dead.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for op in reversed(dead):
        if not list(op.results[0].uses):
            op.erase()
