"""Decide the tile of every kernel and write it down, with its bytes and what bound it.

The decision is made by `analysis/tile_choice.py` from the loops and operands of the kernel and the
module's `npu.target`; nothing is rewritten here. A kernel that already has a schedule keeps it. A
kernel whose smallest tile exceeds a memory is an error with needed and available bytes.

Before:
    func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d"}
After:
    func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d", npu.schedule = {
        tile = array<i64: 0, 8, 0, 2, 0>,     // parallel loops of the last op, 0: whole
        reduction_tile = array<i64: 16, 0, 0>, // reduction loops of the root, only if split
        parallel = true, sram_bytes = 148992, acc_bytes = 57344, bound = "cores"}}
"""
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.analysis.footprint import KernelShape
from mlir_npu.passes.analysis.tile_choice import Budget, Choice, DoesNotFit, choose_tile
from mlir_npu.passes.kernels.describe import describe
from mlir_npu.passes.kernels.walk import kernels, string, symbol
from mlir_npu.passes.registry import NoOptions, fail, register_pass

SCHEDULE = "npu.schedule"


@register_pass("choose-tiles")
def choose_tiles(module: ir.Operation, options: NoOptions) -> None:
    todo = [kernel for kernel in kernels(module) if SCHEDULE not in kernel.attributes]
    if not todo:
        return
    budget = Budget.of(target_of(module))
    for kernel in todo:
        kernel.attributes[SCHEDULE] = _schedule(kernel, budget)


def _schedule(kernel: ir.Operation, budget: Budget) -> ir.Attribute:
    try:
        shape = describe(kernel, budget.lanes)
    except ValueError as error:
        fail(kernel, f"kernel '{symbol(kernel)}' cannot be tiled: {error}")
    if shape is None:
        return _attribute((), (), Choice((), False, 0, 0, "data movement"))
    try:
        choice = choose_tile(shape, budget)
    except DoesNotFit as error:
        kind = string(kernel, "npu.kernel")
        fail(kernel, f"{kind} kernel '{symbol(kernel)}' does not fit: {error}; run it on the host")
    return _attribute(*_relative_tile(shape, choice), choice)


def _relative_tile(shape: KernelShape, choice: Choice) -> tuple[list[int], list[int]]:
    """Tile sizes with 0 for whole loops: parallel loops, then reduction loops."""
    sizes = [0 if t == loop.extent else t for t, loop in zip(choice.tile, shape.loops)]
    return [sizes[i] for i in shape.parallel], [sizes[i] for i in shape.reductions]


def _attribute(tile, reduction_tile, choice: Choice) -> ir.Attribute:
    i64 = ir.IntegerType.get_signless(64)
    entries = {
        "tile": ir.DenseI64ArrayAttr.get(list(tile)),
        "parallel": ir.BoolAttr.get(choice.parallel),
        "sram_bytes": ir.IntegerAttr.get(i64, choice.sram_bytes),
        "acc_bytes": ir.IntegerAttr.get(i64, choice.acc_bytes),
        "bound": ir.StringAttr.get(choice.bound),
    }
    if any(reduction_tile):
        entries["reduction_tile"] = ir.DenseI64ArrayAttr.get(list(reduction_tile))
    return ir.DictAttr.get(entries)
