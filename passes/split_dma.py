"""Turn a move with more dimensions than the DMA engine has into a loop over moves.

Dimensions count after merging (`analysis/move_shape.py`): a dimension of extent 1 is none, and
neighbours that are contiguous on both sides are one. The loops run over the dimensions with the
fewest elements, and each of their moves is waited for at once. A move that pads is split along
dimensions that it does not pad. Targets whose sram is a cache have no engine and are left alone.

Before (max_rank = 4):
    %t = "npu.dma_start"(%x, %y) {permutation = [4, 3, 2, 1, 0]} : memref<8x7x6x5x2xf32>, ...
    "npu.dma_wait"(%t)
After:
    scf.for %i = %c0 to %c2 step %c1 {
      %from = memref.subview %x[0, 0, 0, 0, %i] [8, 7, 6, 5, 1]
      %to = memref.subview %y[%i, 0, 0, 0, 0] [1, 5, 6, 7, 8]
      %t = "npu.dma_start"(%from, %to) {permutation = [4, 3, 2, 1, 0]};  "npu.dma_wait"(%t) }
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir_npu.dialect.bindings import ir, memref, scf
from mlir_npu.dialect.movement import DmaStartOp, DmaWaitOp
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.analysis.move_shape import Dim, dims_to_loop_over, move_dims
from mlir_npu.passes.kernels.walk import constant_of, functions, integers, nested, users
from mlir_npu.passes.pipelining.loop_chain import index
from mlir_npu.passes.registry import NoOptions, fail, register_pass

DYNAMIC = ir.ShapedType.get_dynamic_size()
DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


@register_pass("split-dma")
def split_dma(module: ir.Operation, options: NoOptions) -> None:
    moves = [move for f in functions(module) for move in nested(f, "npu.dma_start")]
    if not moves or (target := target_of(module)).cached:
        return
    for move in moves:
        if len(dims_of_move(move)) > target.dma.max_rank:
            _split(move, target.dma.max_rank)


def dims_of_move(move: ir.Operation) -> tuple[Dim, ...]:
    """The dimensions of a move that the engine walks, outermost first."""
    source, target = (ir.MemRefType(move.operands[i].type) for i in (0, 1))
    shape = [None if extent == DYNAMIC else extent for extent in source.shape]
    return move_dims(shape, _strides(source), _strides(target), integers(move, "permutation"))


def _strides(type_: ir.MemRefType) -> list[int | None]:
    strides, _ = type_.get_strides_and_offset()
    return [None if stride == DYNAMIC_STRIDE else stride for stride in strides]


def _split(move: ir.Operation, max_rank: int) -> None:
    dims = dims_of_move(move)
    wait = _wait_at_once(move)
    excess = f"a move of {len(dims)} dimensions exceeds the {max_rank} of the DMA engine"
    if wait is None:
        fail(move, f"{excess}, and only one that is waited for at once becomes a loop")
    looped = dims_to_loop_over(dims, max_rank, _padded_dims(move))
    if looped is None:
        fail(
            move,
            f"{excess}, and it pads or has unknown extents in too many of them to be split; "
            "raise dma.max_rank of the target or run the kernel on the host",
        )
    counters, body = {}, ir.InsertionPoint(move)
    for dim in looped:
        extent = ir.MemRefType(move.operands[1].type).shape[dim]
        with body, move.location:
            loop = scf.ForOp(index(0), index(extent), index(1))
        with ir.InsertionPoint(loop.body), move.location:
            body = ir.InsertionPoint(scf.YieldOp([]).operation)
        counters[dim] = loop.induction_variable
    with body, move.location:
        _move_slice(move, counters)
    wait.erase()
    move.erase()


def _wait_at_once(move: ir.Operation) -> ir.Operation | None:
    """The wait right behind `move` for nothing but it."""
    behind = [child.operation for child in move.block.operations]
    following = behind[behind.index(move) + 1]
    if users(move.results[0]) != [following] or len(following.operands) > 1:
        return None
    return following


def _padded_dims(move: ir.Operation) -> list[int]:
    """Dimensions of the target that the source does not fill."""
    source, target, *low = move.operands
    order = integers(move, "permutation")
    padded = []
    for dim, position in enumerate(low):
        constant = constant_of(position)
        at_start = constant is not None and ir.IntegerAttr(constant).value == 0
        if not at_start or source.type.shape[order[dim]] != target.type.shape[dim]:
            padded.append(dim)
    return padded


def _move_slice(move: ir.Operation, counters: Mapping[int, ir.Value]) -> None:
    """The move of the elements at `counters`, which are by dimension of the target."""
    source, target, *low = move.operands
    order = integers(move, "permutation")
    start = DmaStartOp.build(
        _slice(source, {order[dim]: counter for dim, counter in counters.items()}),
        _slice(target, counters),
        low=low,
        permutation=order,
        pad_value=move.attributes["pad_value"] if low else None,
    )
    DmaWaitOp([start.token])


def _slice(buffer: ir.Value, counters: Mapping[int, ir.Value]) -> ir.Value:
    type_ = ir.MemRefType(buffer.type)
    strides, _ = type_.get_strides_and_offset()
    dims = range(type_.rank)
    sizes = [1 if dim in counters else type_.shape[dim] for dim in dims]
    offsets = [DYNAMIC_STRIDE if dim in counters else 0 for dim in dims]
    part = ir.MemRefType.get(
        sizes,
        type_.element_type,
        layout=ir.StridedLayoutAttr.get(DYNAMIC_STRIDE, strides),
        memory_space=type_.memory_space,
    )
    extents = [memref.DimOp(buffer, index(dim)).result for dim in dims if sizes[dim] == DYNAMIC]
    chosen = [counters[dim] for dim in sorted(counters)]
    return memref.SubViewOp(
        part, buffer, chosen, extents, [], offsets, sizes, [1] * type_.rank
    ).result
