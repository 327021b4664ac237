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
    """Replace `transpose` by moves to or from its other side; False if it has to stay a move.

    A buffer may hold an operand, and later the result: what moves read is from before, and what is
    stored there must be stored before any tile of the result.
    """
    source, target = transpose.operands
    permutation = integers(transpose, "permutation")
    if (moves := _moves_of_tiles(target, SOURCE)) or _is_temporary(target):
        _retarget(moves, target, source, inverse(permutation), SOURCE)
    elif _is_temporary(source) and not _moves_of_tiles(target, TARGET):
        _retarget(_moves_of_tiles(source, TARGET), source, target, permutation, TARGET)
    else:
        return False
    transpose.erase()
    for side in (source, target):
        if _is_temporary(side) and not users(side):
            definition(side).erase()
    return True


def _is_temporary(buffer: ir.Value) -> bool:
    made_by = definition(buffer)
    return made_by is not None and made_by.name == "memref.alloc" and space_of(buffer.type) == DRAM


def _moves_of_tiles(buffer: ir.Value, side: int) -> list[ir.Operation]:
    """The moves with `buffer`, or a box of it, on one side."""
    views = [buffer, *subviews(buffer)]
    found = (user for view in views for user in users(view) if user.name == MOVE)
    return [move for move in dict.fromkeys(found) if move.operands[side] in views]


def _retarget(
    moves: list[ir.Operation], old: ir.Value, new: ir.Value, order: tuple[int, ...], side: int
) -> None:
    """Replace `old` by `new` on one side of `moves`; dimension i of `new` is order[i] of `old`."""
    for view in [old, *subviews(old)]:
        for user in users(view):
            if user.name not in (MOVE, "memref.subview", TRANSPOSE):
                fail(user, f"'{user.name}' uses a transposed buffer; only moves of its tiles may")
    for move in moves:
        _rebuild(move, old, new, order, side)
    for view in reversed(subviews(old)):
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
