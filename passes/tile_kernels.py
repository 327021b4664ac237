"""Tile every kernel as its `npu.schedule` says: loops over tiles, producers fused into them.

The last op of the kernel is tiled with `scf.forall`; the root and the accumulator fill are fused
into the loop; a `tensor.pad` stays outside, because its copy later becomes part of the move of a
tile. With `reduction_tile` the root runs in an `scf.for` over slices of its reduction, inside the
forall, accumulating into the same tile. Kernels that are scheduled whole are left alone.

Before:
    %f = linalg.fill ins(%zero) outs(%e)
    %c = linalg.generic {npu.op = "conv2d"} ins(%x, %w) outs(%f)
    %r = linalg.generic ins(%c, %shift) outs(%e)
After:
    %r = scf.forall (%i, %k) in (7, 2) shared_outs(%o = %e) {
      %f = linalg.fill outs(%o[tile]);  %c = linalg.generic ins(%x[tile], %w[tile]) outs(%f)
      %t = linalg.generic ins(%c, %shift[tile]) outs(%o[tile])
      scf.forall.in_parallel { tensor.parallel_insert_slice %t into %o[tile] } }
"""

from mlir_npu.dialect.bindings import PassManager, ir, structured, transform
from mlir_npu.passes.kernels.prerequisites import require_kernels
from mlir_npu.passes.kernels.schedule import (
    SCHEDULE,
    TILE_LOOPS,
    check_against_loops,
    read_schedule,
)
from mlir_npu.passes.kernels.structured import (
    KernelOps,
    kernel_ops,
    loop_extents,
    maps,
    reduction_loops,
)
from mlir_npu.passes.kernels.walk import kernels, nested, symbol
from mlir_npu.passes.registry import NoOptions, fail, register_pass

TAG = "npu.tile_role"
CLEANUP = "any(canonicalize,cse)"


@register_pass("tile-kernels")
def tile_kernels(module: ir.Operation, options: NoOptions) -> None:
    require_kernels(module)
    for kernel in kernels(module):
        schedule = read_schedule(kernel)
        if nested(kernel, *TILE_LOOPS):
            continue
        check_against_loops(kernel, schedule)
        if any(schedule.tile) or any(schedule.reduction_tile):
            _tile(kernel, list(schedule.tile), list(schedule.reduction_tile))


def _tile(kernel: ir.Operation, tile: list[int], reduction: list[int]) -> None:
    ops = kernel_ops(kernel)
    tile = _whole_as_zero(kernel, ops.last, tile)
    sizes = _over_all_loops(ops.last, tile, reduction_loops(ops.last), [])
    splits = _over_all_loops(ops.root, [], reduction_loops(ops.root), reduction)
    tags = _tag(ops)
    script = _script(ops, tags, sizes, splits if any(reduction) else None)
    try:
        script.body.operations[0].apply(kernel)
    except ValueError as error:
        fail(kernel, f"tiling '{symbol(kernel)}' by {tile} failed: {error}")
    for op in nested(kernel):
        if TAG in op.attributes:
            del op.attributes[TAG]
    PassManager.parse(CLEANUP).run(kernel)


def _whole_as_zero(kernel: ir.Operation, last: ir.Operation, tile: list[int]) -> list[int]:
    """The tile with 0 for whole loops, in the schedule too: a loop of one trip is not kept."""
    reduced, extents = reduction_loops(last), loop_extents(last)
    parallel = [extent for loop, extent in enumerate(extents) if loop not in reduced]
    sizes = [0 if size == extent else size for size, extent in zip(tile, parallel)]
    if sizes != tile:
        schedule = ir.DictAttr(kernel.attributes[SCHEDULE])
        entries = {named.name: named.attr for named in schedule}
        entries["tile"] = ir.DenseI64ArrayAttr.get(sizes)
        kernel.attributes[SCHEDULE] = ir.DictAttr.get(entries)
    return sizes


def _over_all_loops(op, parallel_sizes, reductions, reduction_sizes) -> list[int]:
    """Sizes per loop of `op` from sizes of its parallel and of its reduction loops; 0 elsewhere."""
    parallel, reduced = iter(parallel_sizes), iter(reduction_sizes)
    loops = range(maps(op)[0].n_dims)
    return [next(reduced if loop in reductions else parallel, 0) for loop in loops]


def _tag(ops: KernelOps) -> list[str]:
    """Give every op to fuse a name for the script; consumers come before their producers."""
    order = [*reversed(ops.epilogue[:-1]), *([ops.root] if ops.epilogue else []), *ops.fills]
    ops.last.attributes[TAG] = ir.StringAttr.get("last")
    names = []
    for position, op in enumerate(order):
        names.append("root" if op == ops.root else f"producer{position}")
        op.attributes[TAG] = ir.StringAttr.get(names[-1])
    return names


def _script(ops: KernelOps, producers: list[str], sizes: list[int], splits: list[int] | None):
    """The transform script of one kernel. The module must outlive its use."""
    handle = transform.AnyOpType.get()
    script = ir.Module.create(ops.last.location)
    script.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
    with ir.InsertionPoint(script.body):
        consumed = [{"transform.consumed": ir.UnitAttr.get()}]
        sequence = transform.NamedSequenceOp("__transform_main", [handle], [], arg_attrs=consumed)
    with ir.InsertionPoint(sequence.body):
        match = _matcher(sequence.bodyTarget, handle)
        loops = ["scf.forall"]
        if any(sizes):
            structured.TileUsingForallOp(match("last"), tile_sizes=sizes)
            for name in producers:
                # fusing consumes the handle of the loop, so each gets a fresh one
                loop = structured.MatchOp.match_op_names(handle, sequence.bodyTarget, loops)
                structured.FuseIntoContainingOp(match(name), loop.results_)
        if splits:
            structured.TileUsingForOp(match("root" if ops.epilogue else "last"), sizes=splits)
        transform.YieldOp([])
    return script


def _matcher(root, handle):
    def match(name: str):
        attributes = {TAG: ir.StringAttr.get(name)}
        return structured.MatchOp(handle, root, op_attrs=attributes).results_

    return match
