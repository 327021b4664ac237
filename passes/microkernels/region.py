"""Scalar regions of npu ops, cloned onto vectors of any width."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import arith, ir, vector
from mlir_npu.passes.microkernels.emit import constant

# A multiply feeding an add may become one FMA; nothing else about the arithmetic may change.
_CONTRACTED = frozenset({"arith.addf", "arith.subf", "arith.mulf"})
# Of zeros of either sign any may be the largest, as in eager: no instruction tells them apart.
_SIGN_OF_ZERO_IGNORED = frozenset({"arith.maximumf", "arith.minimumf"})
# Not where integers stand for numbers: each step of a requantisation rounds as it is written.
_QUANTIZING = frozenset({"arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"})


# Of two numbers the greater, or the lesser, and NaN if one is that: as the first is written the CPU
# takes a comparison and a masked move for it, as the second one instruction. If both are zero, the
# sign may differ.
_EXCHANGED = {
    arith.CmpFPredicate.UGT: arith.CmpFPredicate.OLT,
    arith.CmpFPredicate.ULT: arith.CmpFPredicate.OGT,
}


class NotVectorisableError(ValueError):
    """A region op that has no elementwise vector form."""


def vector_type(element: ir.Type, width: int) -> ir.VectorType:
    return ir.VectorType.get([width], element)


def splat(scalar: ir.Value, width: int) -> ir.Value:
    return vector.BroadcastOp(vector_type(scalar.type, width), scalar).result


def splat_constant(value: ir.Attribute, width: int) -> ir.Value:
    """A vector of `width` times the scalar attribute `value` (float or integer)."""

    def make() -> ir.Value:
        type_ = vector_type(value.type, width)
        return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, value)).result

    return constant((value, width), make)


def inline_region(block: ir.Block, arguments: Sequence[ir.Value], width: int) -> list[ir.Value]:
    """Clone `block` at the insertion point with vectors for its arguments; returns what it yields.

    Scalars from outside become splats. Raises NotVectorisableError for ops with regions or with
    operands that are not scalars.
    """
    values = dict(zip(block.arguments, arguments, strict=True))

    def lookup(value: ir.Value) -> ir.Value:
        if value not in values:
            values[value] = splat(value, width)
        return values[value]

    *body, terminator = block.operations
    contracted = frozenset() if any(op.name in _QUANTIZING for op in body) else _CONTRACTED
    for op in body:
        operands = [lookup(v) for v in op.operands]
        results = _extremum(op.operation, operands) or _clone(
            op.operation, operands, width, contracted
        )
        values.update(zip(op.results, results, strict=True))
    return [lookup(v) for v in terminator.operands]


def _extremum(op: ir.Operation, operands: list[ir.Value]) -> list[ir.Value] | None:
    """`x > y or NaN ? x : y` as `x < y ? y : x`, None where `op` is no such choice."""
    if op.name != "arith.select":
        return None
    condition, *chosen = op.operands
    comparison = condition.owner
    if isinstance(comparison, ir.Block) or comparison.name != "arith.cmpf":
        return None
    predicate = arith.CmpFPredicate(ir.IntegerAttr(comparison.attributes["predicate"]).value)
    if predicate not in _EXCHANGED or list(comparison.operands) != chosen:
        return None
    _, x, y = operands
    exchanged = arith.CmpFOp(_EXCHANGED[predicate], x, y).result
    return [arith.SelectOp(exchanged, y, x).result]


def _clone(
    op: ir.Operation, operands: list[ir.Value], width: int, contracted: frozenset[str]
) -> list[ir.Value]:
    if op.name == "arith.constant":
        return [splat_constant(op.attributes["value"], width)]
    if len(op.regions) or not op.name.startswith(("arith.", "math.")):
        raise NotVectorisableError(f"'{op.name}' has no elementwise vector form")
    attributes = {name: op.attributes[name] for name in op.attributes}
    if op.name in contracted:
        attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<contract>")
    if op.name in _SIGN_OF_ZERO_IGNORED:
        attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<nsz>")
    clone = ir.Operation.create(
        op.name,
        results=[vector_type(r.type, width) for r in op.results],
        operands=operands,
        attributes=attributes,
    )
    return list(clone.results)
