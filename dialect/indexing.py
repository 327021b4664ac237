"""Checks of indexing maps: one per operand, from the iteration space to the operand's elements."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.base import error
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.checks import DYNAMIC


def check_indexing(
    op: ir.OpView, operands: Sequence[ir.Value], dimensions: int | None = None
) -> bool:
    """The maps agree with each other and stay inside their operands.

    dimensions: of the iteration space; by default those of the first map. A dimension has the
    extent of the operands that it indexes directly, and each must index some operand directly.
    """
    not_maps = [str(item) for item in op.indexing_maps if not isinstance(item, ir.AffineMapAttr)]
    if not_maps:
        return error(op, f"'indexing_maps' must hold affine maps, got {not_maps[0]}")
    maps = [item.value for item in op.indexing_maps]
    if len(maps) != len(operands):
        return error(
            op, f"needs one indexing map per operand: {len(maps)} maps, {len(operands)} operands"
        )
    dimensions = maps[0].n_dims if dimensions is None else dimensions
    for number, (operand, indexing_map) in enumerate(zip(operands, maps)):
        if not _check_form(op, number, operand, indexing_map, dimensions):
            return False
    shapes = [ir.MemRefType(operand.type).shape for operand in operands]
    extents = _extents(op, shapes, maps)
    if extents is None:
        return False
    missing = [f"d{i}" for i in range(dimensions) if i not in extents]
    if missing:
        return error(op, f"no operand gives the extent of {', '.join(missing)}")
    return _check_bounds(op, shapes, maps, extents)


def _check_form(
    op: ir.OpView, number: int, operand: ir.Value, indexing_map: ir.AffineMap, dimensions: int
) -> bool:
    rank = ir.MemRefType(operand.type).rank
    if indexing_map.n_symbols:
        return error(op, f"indexing map {number} must have no symbols: {indexing_map}")
    if indexing_map.n_dims == dimensions and len(indexing_map.results) == rank:
        return True
    return error(
        op,
        f"indexing map {number} must go from {dimensions} dimensions to the rank {rank} of its "
        f"operand, got {indexing_map}",
    )


def _extents(
    op: ir.OpView, shapes: Sequence[Sequence[int]], maps: Sequence[ir.AffineMap]
) -> dict[int, int] | None:
    """Extent of each dimension that indexes an operand directly; None after an error."""
    extents: dict[int, int] = {}
    for number, (shape, indexing_map) in enumerate(zip(shapes, maps)):
        for extent, result in zip(shape, indexing_map.results):
            if not isinstance(result, ir.AffineDimExpr):
                continue
            known = extents.get(result.position, DYNAMIC)
            if known not in (DYNAMIC, extent) and extent != DYNAMIC:
                error(
                    op,
                    f"operand {number} has extent {extent} along d{result.position}, "
                    f"an operand before it has {known}",
                )
                return None
            extents[result.position] = extent if known == DYNAMIC else known
    return extents


def _check_bounds(
    op: ir.OpView,
    shapes: Sequence[Sequence[int]],
    maps: Sequence[ir.AffineMap],
    extents: dict[int, int],
) -> bool:
    for number, (shape, indexing_map) in enumerate(zip(shapes, maps)):
        for position, (extent, result) in enumerate(zip(shape, indexing_map.results)):
            reached = _reached(result, extents)
            if reached is None:
                continue
            first, last = reached
            if first < 0:
                return error(
                    op, f"dimension {position} of operand {number}: {result} goes down to {first}"
                )
            if extent != DYNAMIC and last >= extent:
                return error(
                    op,
                    f"operand {number} has extent {extent} in dimension {position}, "
                    f"but {result} goes up to {last}",
                )
    return True


def _reached(expression: ir.AffineExpr, extents: dict[int, int]) -> tuple[int, int] | None:
    """Smallest and largest value of sums and products over all iterations; None if unknown."""
    if isinstance(expression, ir.AffineConstantExpr):
        return expression.value, expression.value
    if isinstance(expression, ir.AffineDimExpr):
        extent = extents[expression.position]
        return None if extent == DYNAMIC else (0, extent - 1)
    if not isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left, right = _reached(expression.lhs, extents), _reached(expression.rhs, extents)
    if left is None or right is None:
        return None
    if isinstance(expression, ir.AffineAddExpr):
        return left[0] + right[0], left[1] + right[1]
    products = [one * other for one in left for other in right]
    return min(products), max(products)
