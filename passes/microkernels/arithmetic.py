"""Vector arithmetic whose operations follow from the type: floats, or integers with their sign.

Operands may be narrower integers than the sum that they go into: they are widened first.
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import arith, ir, vector


def is_integer(type_: ir.Type) -> bool:
    """Whether a scalar or vector type holds integers."""
    return isinstance(_element(type_), ir.IntegerType)


def widened(value: ir.Value, like: ir.Type) -> ir.Value:
    """A scalar or vector in the element type of `like`, which is no narrower."""
    element = _element(like)
    if _element(value.type) == element:
        return value
    wide = element
    if isinstance(value.type, ir.VectorType):
        wide = ir.VectorType.get(ir.VectorType(value.type).shape, element)
    return arith.ExtSIOp(wide, value).result


def multiply_add(left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
    """`left * right + total`, one rounding for floats."""
    if not is_integer(total.type):
        return vector.FMAOp(left, right, total).result
    product = arith.MulIOp(widened(left, total.type), widened(right, total.type)).result
    return arith.AddIOp(total, product).result


def add(total: ir.Value, value: ir.Value) -> ir.Value:
    if not is_integer(total.type):
        return arith.AddFOp(total, value).result
    return arith.AddIOp(total, widened(value, total.type)).result


def maximum(total: ir.Value, value: ir.Value) -> ir.Value:
    """NaN wins, as arith.maximumf has it."""
    if not is_integer(total.type):
        return arith.MaximumFOp(total, value).result
    return arith.MaxSIOp(total, widened(value, total.type)).result


def _element(type_: ir.Type) -> ir.Type:
    return ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_
