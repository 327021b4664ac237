"""Transposes that compose with each other, cancel, and become views where no element moves."""

from collections.abc import Container, Sequence

from mlir_npu.dialect.bindings import ir, linalg
from mlir_npu.passes.analysis.permutation import (
    coalesce,
    compose,
    is_identity,
    keeps_order,
    permuted,
)
from mlir_npu.passes.rewriting.values import (
    before,
    defined_by,
    element_type,
    empty,
    replace,
    shape_of,
)
from mlir_npu.passes.rewriting.views import viewed

TRANSPOSE = "linalg.transpose"


def permutation_of(transpose: ir.Operation) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(transpose.attributes["permutation"]))


def transpose_source(value: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
    """What `value` is a transpose of, and the permutation; None if it is none."""
    op = defined_by(value, TRANSPOSE)
    return (op.operands[0], permutation_of(op)) if op is not None else None


def transposed(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """`value` with permuted dimensions: one transpose, a view, or something that exists."""
    source, permutation = _composed(value, permutation)
    if keeps_order(shape_of(source), permutation):
        return viewed(source, permuted(shape_of(source), permutation))
    return _transpose(source, permutation)


def marked_transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """As `transposed`, but a movement of unit dimensions stays a transpose that passes can see."""
    source, permutation = _composed(value, permutation)
    return source if is_identity(permutation) else _transpose(source, permutation)


def _composed(value: ir.Value, permutation: Sequence[int]) -> tuple[ir.Value, tuple[int, ...]]:
    made_by = transpose_source(value)
    if made_by is None:
        return value, tuple(permutation)
    return made_by[0], compose(made_by[1], permutation)


def _transpose(source: ir.Value, permutation: Sequence[int]) -> ir.Value:
    init = empty(permuted(shape_of(source), permutation), element_type(source))
    attribute = ir.DenseI64ArrayAttr.get(list(permutation))
    op = linalg.TransposeOp([init.type], source, init, attribute)
    linalg.fill_builtin_region(op.operation)
    return op.operation.results[0]


def split_dimension(value: ir.Value, dimension: int, factors: Sequence[int]) -> ir.Value:
    """`value` with one dimension split into several; a transpose stays the last op."""
    made_by = transpose_source(value)
    if made_by is None:
        shape = shape_of(value)
        return viewed(value, (*shape[:dimension], *factors, *shape[dimension + 1 :]))
    source, permutation = made_by
    first, more = permutation[dimension], len(factors) - 1
    moved = [
        tuple(range(first, first + more + 1)) if d == first else (d + more * (d > first),)
        for d in permutation
    ]
    split = split_dimension(source, first, factors)
    return marked_transpose(split, [d for dims in moved for d in dims])


def transposes_to_views(block: ir.Block) -> None:
    """Replace every transpose that only moves dimensions of extent 1 by a view."""
    for op in _transposes(block):
        source, permutation = op.operands[0], permutation_of(op)
        if not keeps_order(shape_of(source), permutation):
            continue
        with before(op):
            view = viewed(source, shape_of(op.results[0]))
        replace(op, [view])


def coalesce_transposes(block: ir.Block, besides: Container[ir.Operation]) -> None:
    """Give every transpose the fewest dimensions that move its elements, between two views."""
    for op in _transposes(block):
        if op in besides:
            continue
        source, permutation = op.operands[0], permutation_of(op)
        extents, fewer = coalesce(shape_of(source), permutation)
        if len(fewer) == len(permutation):
            continue
        with before(op):
            moved = _transpose(viewed(source, extents), fewer)
            result = viewed(moved, shape_of(op.results[0]))
        replace(op, [result])


def _transposes(block: ir.Block) -> list[ir.Operation]:
    return [view.operation for view in block.operations if view.operation.name == TRANSPOSE]
