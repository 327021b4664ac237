"""The loops of a linalg operation, named or generic."""

from math import prod

from mlir_npu.dialect.bindings import ir, linalg
from mlir_npu.passes.rewriting.values import shape_of

# The bindings leave the maps of a named operation behind on it; equal kernels must stay equal.
_MEMO = "linalg.memoized_indexing_maps"


def indexing_maps(op: ir.Operation) -> list[ir.AffineMap] | None:
    """One map per operand; None if `op` has no loops."""
    had_memo = _MEMO in op.attributes
    attributes = linalg.get_indexing_maps(op)
    if not had_memo and _MEMO in op.attributes:
        del op.attributes[_MEMO]
    if attributes is None:
        return None
    return [ir.AffineMapAttr(attribute).value for attribute in attributes]


def iterations(op: ir.Operation) -> int:
    """How often the body of `op` runs; 1 if it has no loops."""
    extents: dict[int, int] = {}
    for value, map_ in zip(op.operands, indexing_maps(op) or [], strict=False):
        if not isinstance(value.type, ir.ShapedType):
            continue
        for expression, extent in zip(map_.results, shape_of(value), strict=True):
            if isinstance(expression, ir.AffineDimExpr):
                extents[expression.position] = extent
    return prod(extents.values())
