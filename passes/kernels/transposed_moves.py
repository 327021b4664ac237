"""Fold the transpose of a whole buffer into the moves of its tiles.

The side of the transpose that only the kernel knows, a temporary, does not exist afterwards: moves
from boxes of a transposed operand read its source, moves into boxes of a result that is transposed
afterwards write the target, each with a permutation.

Before:
    linalg.transpose ins(%x : 1x8x6x6) outs(%t : 1x6x6x8) permutation = [0, 2, 3, 1]
    npu.dma_start(subview %t[0, %i, 0, 0] [1, 2, 6, 8], %tile)
After:
    npu.dma_start(subview %x[0, 0, %i, 0] [1, 8, 2, 6], %tile) {permutation = [0, 2, 3, 1]}
"""

from __future__ import annotations

from mlir_npu.dialect.attributes import DRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.movement import DmaStartOp
from mlir_npu.passes.analysis.permutation import compose, inverse, permuted
from mlir_npu.passes.kernels.clamp import unwrap_subviews
from mlir_npu.passes.kernels.structured import TRANSPOSE
from mlir_npu.passes.kernels.views import box_of, extents_of, subviews
from mlir_npu.passes.kernels.walk import definition, integers, users
from mlir_npu.passes.registry import fail

MOVE = "npu.dma_start"
SOURCE, TARGET = 0, 1


def fold_transpose(transpose: ir.Operation) -> bool:
    """Replace `transpose` by moves to or from its other side; False if no side is a temporary."""
    source, target = transpose.operands
    permutation = integers(transpose, "permutation")
    if _is_temporary(target):
        temporary = target
        _retarget(target, source, inverse(permutation), SOURCE)
    elif _is_temporary(source):
        temporary = source
        _retarget(source, target, permutation, TARGET)
    else:
        return False
    transpose.erase()
    if not users(temporary):
        definition(temporary).erase()
    return True


def _is_temporary(buffer: ir.Value) -> bool:
    made_by = definition(buffer)
    return made_by is not None and made_by.name == "memref.alloc" and space_of(buffer.type) == DRAM


def _retarget(old: ir.Value, new: ir.Value, order: tuple[int, ...], side: int) -> None:
    """Replace `old` by `new` on one side of its moves; dimension i of `new` is order[i] of `old`.

    Moves on the other side belong to another transpose: a temporary may hold an operand, and later
    the result.
    """
    views = [old, *subviews(old)]
    for view in views:
        for move in users(view):
            if move.name == MOVE and move.operands[side] == view:
                _rebuild(move, old, new, order, side)
            elif move.name not in (MOVE, "memref.subview", TRANSPOSE):
                fail(move, f"'{move.name}' uses a transposed buffer; only moves of its tiles may")
    for view in reversed(views[1:]):
        if not users(view):
            definition(view).erase()


def _rebuild(
    move: ir.Operation, old: ir.Value, new: ir.Value, order: tuple[int, ...], side: int
) -> None:
    source, target, *low = move.operands
    tile = (source, target)[side]
    with ir.InsertionPoint(move), move.location:
        starts = unwrap_subviews(tile, old)
        if starts is None:
            fail(move, f"a tile of a transposed buffer must be a dense box of it, got {tile.type}")
        box = box_of(new, permuted(starts, order), permuted(extents_of(tile), order))
        permutation = integers(move, "permutation")
        if side == SOURCE:
            # target dimension d is old dimension permutation[d]
            source, permutation = box, compose(inverse(order), permutation)
        else:
            target, permutation = box, compose(permutation, order)
            low = permuted(low, order) if low else ()
        padding = move.attributes["pad_value"] if low else None
        moved = DmaStartOp.build(
            source, target, low=low, permutation=permutation, pad_value=padding
        )
    move.results[0].replace_all_uses_with(moved.token)
    move.erase()
