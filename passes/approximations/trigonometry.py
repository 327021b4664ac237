"""sin and cos of f32, computed in f64.

x = q * pi / 2 + r with a whole number q and |r| <= pi / 4. In f64 the remainder is good to many
more digits than f32 has, also next to the zeros, as long as q is exact: beyond LARGEST the library
function is called for each lane. The polynomials are Taylor's.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, pi

from mlir_npu.dialect.bindings import ir, math, scf, vector
from mlir_npu.passes.approximations.algebra import Real, polynomial

LARGEST = 1e9
# pi / 2 in two parts, and what f64 adds to round to a whole number that its low bits hold.
HALF_PI_HIGH, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
ROUNDER = 6755399441055744.0
SIN = [(-1) ** k / factorial(2 * k + 1) for k in range(5, 0, -1)]
COS = [(-1) ** k / factorial(2 * k) for k in range(6, 0, -1)]


def sin(x: Real) -> Real:
    """Within 1 ulp."""
    return _unless_huge(x, math.SinOp, lambda: _quarter(x, 0))


def cos(x: Real) -> Real:
    """Within 1 ulp."""
    return _unless_huge(x, math.CosOp, lambda: _quarter(x, 1))


def _quarter(x: Real, shift: int) -> Real:
    """sin(x + shift * pi / 2)."""
    wide = x.widened()
    shifted = wide.times_plus(2 / pi, ROUNDER)
    q = shifted - ROUNDER
    r = q.times_plus(-HALF_PI_LOW, q.times_plus(-HALF_PI_HIGH, wide))
    square = r * r
    sine = (polynomial(square, SIN) * square).times_plus(r, r)
    cosine = polynomial(square, COS).times_plus(square, 1.0)
    quarter = shifted.bits() + shift
    value = (quarter & 1).equals(0).choose(sine, cosine)
    value = (quarter & 2).equals(0).choose(value, -value).narrowed()
    # sin(-0) is -0
    return x.equals(0.0).choose(x, value) if shift == 0 else value


def _unless_huge(x: Real, function: type, fast: Callable[[], Real]) -> Real:
    huge = x.constant(LARGEST).less(abs(x))
    branch = scf.IfOp(huge.any(), [x.value.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([_lane_by_lane(x.value, function)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([fast().value])
    return Real(branch.results[0])


def _lane_by_lane(value: ir.Value, function: type) -> ir.Value:
    result = value
    for lane in range(ir.VectorType(value.type).shape[0]):
        element = function(vector.ExtractOp(value, [], [lane]).result).result
        result = vector.InsertOp(element, result, [], [lane]).result
    return result
