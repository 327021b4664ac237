"""Arithmetic on vectors of floats and integers that reads as formulas: every operator builds an op.

Floats are f32 or f64, the integers that hold their bits i32 or i64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import arith, ir, math, vector


@dataclass(frozen=True)
class Real:
    """A vector of f32 or f64."""

    value: ir.Value

    def constant(self, number: float) -> Real:
        """A vector of the same width, all `number`."""
        type_ = ir.VectorType(self.value.type)
        attribute = ir.FloatAttr.get(type_.element_type, number)
        splat = ir.DenseElementsAttr.get_splat(type_, attribute)
        return Real(arith.ConstantOp(type_, splat).result)

    def _other(self, other: Real | float) -> ir.Value:
        return other.value if isinstance(other, Real) else self.constant(other).value

    def __add__(self, other: Real | float) -> Real:
        return Real(arith.AddFOp(self.value, self._other(other)).result)

    def __sub__(self, other: Real | float) -> Real:
        return Real(arith.SubFOp(self.value, self._other(other)).result)

    def __mul__(self, other: Real | float) -> Real:
        return Real(arith.MulFOp(self.value, self._other(other)).result)

    def __truediv__(self, other: Real | float) -> Real:
        return Real(arith.DivFOp(self.value, self._other(other)).result)

    def __neg__(self) -> Real:
        return Real(arith.NegFOp(self.value).result)

    def __abs__(self) -> Real:
        return Real(math.AbsFOp(self.value).result)

    def times_plus(self, factor: Real | float, addend: Real | float) -> Real:
        """self * factor + addend, fused where the machine can."""
        return Real(vector.FMAOp(self.value, self._other(factor), self._other(addend)).result)

    def less(self, other: Real | float) -> Mask:
        """Ordered: false for NaN."""
        return Mask(arith.CmpFOp(arith.CmpFPredicate.OLT, self.value, self._other(other)).result)

    def equals(self, other: Real | float) -> Mask:
        return Mask(arith.CmpFOp(arith.CmpFPredicate.OEQ, self.value, self._other(other)).result)

    def clamp(self, low: float, high: float) -> Real:
        """Between `low` and `high`; NaN stays NaN."""
        return self.less(low).choose(self.constant(low), self).clamp_above(high)

    def clamp_above(self, high: float) -> Real:
        """At most `high`; NaN stays NaN."""
        return self.constant(high).less(self).choose(self.constant(high), self)

    def with_sign_of(self, other: Real) -> Real:
        return Real(math.CopySignOp(self.value, other.value).result)

    def bits(self) -> Whole:
        width = ir.VectorType(self.value.type).element_type.width
        type_ = _with_element(self.value, ir.IntegerType.get_signless(width))
        return Whole(arith.BitcastOp(type_, self.value).result)

    def truncated(self) -> Real:
        """Without the digits behind the point."""
        return Real(math.TruncOp(self.value).result)

    def widened(self) -> Real:
        """f32 as f64."""
        return Real(arith.ExtFOp(_with_element(self.value, ir.F64Type.get()), self.value).result)

    def narrowed(self) -> Real:
        """f64 as the nearest f32."""
        return Real(arith.TruncFOp(_with_element(self.value, ir.F32Type.get()), self.value).result)


@dataclass(frozen=True)
class Whole:
    """A vector of i32 or i64."""

    value: ir.Value

    def _constant(self, number: int) -> ir.Value:
        type_ = ir.VectorType(self.value.type)
        attribute = ir.IntegerAttr.get(type_.element_type, number)
        splat = ir.DenseElementsAttr.get_splat(type_, attribute)
        return arith.ConstantOp(type_, splat).result

    def _other(self, other: Whole | int) -> ir.Value:
        return other.value if isinstance(other, Whole) else self._constant(other)

    def __add__(self, other: Whole | int) -> Whole:
        return Whole(arith.AddIOp(self.value, self._other(other)).result)

    def __sub__(self, other: Whole | int) -> Whole:
        return Whole(arith.SubIOp(self.value, self._other(other)).result)

    def __lshift__(self, count: int) -> Whole:
        return Whole(arith.ShLIOp(self.value, self._constant(count)).result)

    def __rshift__(self, count: int) -> Whole:
        """Keeps the sign."""
        return Whole(arith.ShRSIOp(self.value, self._constant(count)).result)

    def as_real(self) -> Real:
        """The float with these bits."""
        return Real(arith.BitcastOp(self._real_type(), self.value).result)

    def to_real(self) -> Real:
        """The float of this width that is nearest to this number."""
        return Real(arith.SIToFPOp(self._real_type(), self.value).result)

    def __and__(self, mask: int) -> Whole:
        return Whole(arith.AndIOp(self.value, self._constant(mask)).result)

    def equals(self, other: int) -> Mask:
        return Mask(arith.CmpIOp(arith.CmpIPredicate.eq, self.value, self._constant(other)).result)

    def _real_type(self) -> ir.VectorType:
        wide = ir.VectorType(self.value.type).element_type.width == 64
        return _with_element(self.value, ir.F64Type.get() if wide else ir.F32Type.get())


@dataclass(frozen=True)
class Mask:
    """A vector of i1."""

    value: ir.Value

    def choose(self, then: Real, otherwise: Real) -> Real:
        return Real(arith.SelectOp(self.value, then.value, otherwise.value).result)

    def __and__(self, other: Mask) -> Mask:
        return Mask(arith.AndIOp(self.value, other.value).result)

    def __or__(self, other: Mask) -> Mask:
        return Mask(arith.OrIOp(self.value, other.value).result)

    def negated(self) -> Mask:
        type_ = ir.VectorType(self.value.type)
        true = ir.DenseElementsAttr.get_splat(type_, ir.BoolAttr.get(True))
        return Mask(arith.XOrIOp(self.value, arith.ConstantOp(type_, true).result).result)

    def any(self) -> ir.Value:
        """Whether one of them is true, as one bit."""
        bit = ir.IntegerType.get_signless(1)
        kind = ir.Attribute.parse("#vector.kind<or>")
        return vector.ReductionOp(bit, kind, self.value).result


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """Horner's rule, the highest power's coefficient first."""
    total = x.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total.times_plus(x, coefficient)
    return total


def _with_element(value: ir.Value, element: ir.Type) -> ir.VectorType:
    return ir.VectorType.get(ir.VectorType(value.type).shape, element)
