"""Split moves for the DMA engine: what has too many dimensions, and what channels can share.

Dimensions count after merging (`analysis/move_shape.py`): a dimension of extent 1 is none, and
neighbours that are contiguous on both sides are one. A move with more of them than the engine has
becomes loops over moves, which run over the dimensions with the fewest elements. With several
channels a long move becomes equal parts, as many as there are channels or a divisor of that. The
token of the move becomes that of all parts, so that moves which were started ahead stay so. A move
that pads is split along dimensions that it does not pad. Targets whose sram is a cache have no
engine and are left alone.

Before (max_rank = 4):
    %t = "npu.dma_start"(%x, %y) {permutation = [4, 3, 2, 1, 0]} : memref<8x7x6x5x2xf32>, ...
After:
    %none = "npu.dma_none"()
    %t = scf.for %i = %c0 to %c2 step %c1 iter_args(%before = %none) {
      %from = memref.subview %x[0, 0, 0, 0, %i] [8, 7, 6, 5, 1]
      %to = memref.subview %y[%i, 0, 0, 0, 0] [1, 5, 6, 7, 8]
      %part = "npu.dma_start"(%from, %to) {permutation = [4, 3, 2, 1, 0]}
      %all = "npu.dma_join"(%before, %part);  scf.yield %all }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlir_npu.dialect.attributes import TokenType
from mlir_npu.dialect.bindings import arith, ir, memref, scf
from mlir_npu.dialect.movement import DmaJoinOp, DmaNoneOp, DmaStartOp
from mlir_npu.dialect.target import Dma, target_of
from mlir_npu.passes.analysis.move_shape import (
    Dim,
    dim_to_share,
    dims_to_loop_over,
    move_dims,
    worth_sharing,
)
from mlir_npu.passes.kernels.walk import (
    constant_of,
    definition,
    functions,
    integers,
    nested,
    users,
)
from mlir_npu.passes.pipelining.loop_chain import index
from mlir_npu.passes.registry import NoOptions, fail, register_pass

DYNAMIC = ir.ShapedType.get_dynamic_size()
DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()
JOIN = "npu.dma_join"


@dataclass(frozen=True)
class Cut:
    """Parts of `size` elements along a dimension of the target."""

    dim: int
    size: int


@register_pass("split-dma")
def split_dma(module: ir.Operation, options: NoOptions) -> None:
    moves = [move for f in functions(module) for move in nested(f, "npu.dma_start")]
    if not moves or (target := target_of(module)).cached:
        return
    for move in moves:
        if cuts := _cuts(move, target.dma):
            _split(move, cuts)


def dims_of_move(move: ir.Operation) -> tuple[Dim, ...]:
    """The dimensions of a move that the engine walks, outermost first."""
    source, target = (ir.MemRefType(move.operands[i].type) for i in (0, 1))
    shape = [None if extent == DYNAMIC else extent for extent in source.shape]
    return move_dims(shape, _strides(source), _strides(target), integers(move, "permutation"))


def _strides(type_: ir.MemRefType) -> list[int | None]:
    strides, _ = type_.get_strides_and_offset()
    return [None if stride == DYNAMIC_STRIDE else stride for stride in strides]


def _cuts(move: ir.Operation, dma: Dma) -> list[Cut]:
    """Where to cut a move, outermost first; nowhere for one that is a part already."""
    dims, fixed = dims_of_move(move), _padded_dims(move)
    looped = dims_to_loop_over(dims, dma.max_rank, fixed)
    if looped is None:
        fail(
            move,
            f"a move of {len(dims)} dimensions exceeds the {dma.max_rank} of the DMA engine, "
            "and it pads or has unknown extents in too many of them to be split; "
            "raise dma.max_rank of the target or run the kernel on the host",
        )
    if looped:
        return [Cut(dim, 1) for dim in looped]
    type_ = ir.MemRefType(move.operands[1].type)
    if any(user.name == JOIN for user in users(move.results[0])) or not type_.has_static_shape:
        return []
    if not worth_sharing(_bytes(type_), dma):
        return []
    shared = dim_to_share(dims, type_.shape, dma.channels, fixed)
    return [Cut(shared[0], type_.shape[shared[0]] // shared[1])] if shared else []


def _bytes(type_: ir.MemRefType) -> int:
    return prod(type_.shape) * max(1, type_.element_type.width // 8)


def _split(move: ir.Operation, cuts: Sequence[Cut]) -> None:
    with ir.InsertionPoint(move), move.location:
        token = _moves(move, cuts, {}, DmaNoneOp(TokenType.get()).token)
    move.results[0].replace_all_uses_with(token)
    move.erase()


def _moves(
    move: ir.Operation, cuts: Sequence[Cut], parts: Mapping[Cut, ir.Value], before: ir.Value
) -> ir.Value:
    """The moves of all parts along `cuts`, behind those of `before`; the token of all."""
    if not cuts:
        return DmaJoinOp([before, _move_part(move, parts)], TokenType.get()).token
    cut, *inner = cuts
    extent = ir.MemRefType(move.operands[1].type).shape[cut.dim]
    loop = scf.ForOp(index(0), index(extent), index(cut.size), [before])
    counter, token = loop.body.arguments
    with ir.InsertionPoint(loop.body):
        scf.YieldOp([_moves(move, inner, {**parts, cut: counter}, token)])
    return loop.results[0]


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


def _move_part(move: ir.Operation, parts: Mapping[Cut, ir.Value]) -> ir.Value:
    """The move of the elements from the given ones on."""
    source, target, *low = move.operands
    order = integers(move, "permutation")
    start = DmaStartOp.build(
        _slice(source, {order[cut.dim]: (cut.size, first) for cut, first in parts.items()}),
        _slice(target, {cut.dim: (cut.size, first) for cut, first in parts.items()}),
        low=low,
        permutation=order,
        pad_value=move.attributes["pad_value"] if low else None,
    )
    return start.token


def _slice(buffer: ir.Value, parts: Mapping[int, tuple[int, ir.Value]]) -> ir.Value:
    """So many elements of some dimensions, from an element on."""
    base, offsets, sizes = _box(buffer)
    for dim, (size, first) in parts.items():
        offsets[dim] = first if offsets[dim] == 0 else _sum(offsets[dim], first)
        sizes[dim] = size
    type_ = ir.MemRefType(base.type)
    strides, _ = type_.get_strides_and_offset()
    part = ir.MemRefType.get(
        [DYNAMIC if isinstance(size, ir.Value) else size for size in sizes],
        type_.element_type,
        layout=ir.StridedLayoutAttr.get(DYNAMIC_STRIDE, strides),
        memory_space=type_.memory_space,
    )
    values = [[v for v in group if isinstance(v, ir.Value)] for group in (offsets, sizes)]
    static = [[DYNAMIC if isinstance(v, ir.Value) else v for v in g] for g in (offsets, sizes)]
    return memref.SubViewOp(part, base, *values, [], *static, [1] * type_.rank).result


def _box(buffer: ir.Value) -> tuple[ir.Value, list, list]:
    """What `buffer` is a box of, with offsets and sizes. A box that is empty can have no boxes."""
    op, type_ = definition(buffer), ir.MemRefType(buffer.type)
    if op is not None and op.name == "memref.cast":
        return _box(op.operands[0])
    if op is not None and op.name == "memref.subview" and _has_rank_and_steps_of_base(op):
        values = iter(list(op.operands)[1:])
        offsets, sizes = (
            [next(values) if n == DYNAMIC else n for n in integers(op, f"static_{name}")]
            for name in ("offsets", "sizes")
        )
        return op.operands[0], offsets, sizes
    sizes = [
        memref.DimOp(buffer, index(dim)).result if extent == DYNAMIC else extent
        for dim, extent in enumerate(type_.shape)
    ]
    return buffer, [0] * type_.rank, sizes


def _has_rank_and_steps_of_base(subview: ir.Operation) -> bool:
    base, part = (ir.MemRefType(v.type) for v in (subview.operands[0], subview.results[0]))
    return base.rank == part.rank and set(integers(subview, "static_strides")) == {1}


def _sum(offset: int | ir.Value, first: ir.Value) -> ir.Value:
    other = offset if isinstance(offset, ir.Value) else index(offset)
    return arith.AddIOp(other, first).result
