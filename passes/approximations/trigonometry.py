"""sin and cos of f32: x = q * pi / 2 + r with a whole number q and |r| <= pi / 4.

Up to REDUCED pi / 2 is three f32, and r is two: with fused multiply-adds the first step of the
reduction is exact, and what the second one loses is known. Larger x are reduced in f64, and beyond
LARGEST, where q has no f64, the library function is called for each lane. Few programs see either,
so vectors go there as a whole. The polynomials of f32 are minimax fits of this project, those of
f64 Taylor's.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, pi

from mlir_npu.dialect.bindings import ir, math, scf, vector
from mlir_npu.passes.approximations.algebra import Real, Whole, polynomial

REDUCED, LARGEST = 1e5, 1e9
# pi / 2 in parts, the largest first, and what rounds to a whole number that the low bits hold
HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
ROUNDER = 12582912.0
WIDE_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
WIDE_ROUNDER = 6755399441055744.0
# (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4, in r^2
SIN = (-1.9514615751951077e-4, 8.332155851787888e-3, -1.666665453106679e-1)
COS = (2.443237513070186e-5, -1.3887309451522962e-3, 4.16666455435319e-2)
WIDE_SIN = [(-1) ** k / factorial(2 * k + 1) for k in range(5, 0, -1)]
WIDE_COS = [(-1) ** k / factorial(2 * k) for k in range(6, 0, -1)]


def sin(x: Real) -> Real:
    """Within 1.5 ulp."""
    return _by_size(x, math.SinOp, 0)


def cos(x: Real) -> Real:
    """Within 1.5 ulp."""
    return _by_size(x, math.CosOp, 1)


def _by_size(x: Real, function: type, shift: int) -> Real:
    """sin(x + shift * pi / 2), which is `function`."""

    def library() -> Real:
        return Real(_lane_by_lane(x.value, function))

    def large() -> Real:
        return _if_beyond(LARGEST, x, library, lambda: _wide(x, shift))

    return _if_beyond(REDUCED, x, large, lambda: _narrow(x, shift))


def _narrow(x: Real, shift: int) -> Real:
    first, second, third = HALF_PI
    shifted = x.times_plus(2 / pi, ROUNDER)
    q = shifted - ROUNDER
    exact = q.times_plus(-first, x)
    step = q * second
    r = exact - step
    lost = ((exact - r) - step) - q.times_plus(second, -step)
    rest = q.times_plus(-third, lost)
    square = r * r
    sine = (r * square).times_plus(polynomial(square, SIN), rest) + r
    bend = square.times_plus(polynomial(square, COS), -0.5)
    cosine = square.times_plus(bend, (-r).times_plus(rest, 1.0))
    return _of_quarter(x, shifted.bits() + shift, sine, cosine, shift)


def _wide(x: Real, shift: int) -> Real:
    wide = x.widened()
    shifted = wide.times_plus(2 / pi, WIDE_ROUNDER)
    q = shifted - WIDE_ROUNDER
    first, second = WIDE_HALF_PI
    r = q.times_plus(-second, q.times_plus(-first, wide))
    square = r * r
    sine = (polynomial(square, WIDE_SIN) * square).times_plus(r, r)
    cosine = polynomial(square, WIDE_COS).times_plus(square, 1.0)
    return _of_quarter(x, shifted.bits() + shift, sine, cosine, shift)


def _of_quarter(x: Real, quarter: Whole, sine: Real, cosine: Real, shift: int) -> Real:
    value = (quarter & 1).equals(0).choose(sine, cosine)
    value = (quarter & 2).equals(0).choose(value, -value)
    if value.value.type != x.value.type:
        value = value.narrowed()
    # sin(-0) is -0
    return x.equals(0.0).choose(x, value) if shift == 0 else value


def _if_beyond(limit: float, x: Real, then: Callable[[], Real], other: Callable[[], Real]) -> Real:
    """`then` if one of the lanes is beyond the limit."""
    beyond = x.constant(limit).less(abs(x))
    branch = scf.IfOp(beyond.any(), [x.value.type], has_else=True)
    for block, value in ((branch.then_block, then), (branch.else_block, other)):
        with ir.InsertionPoint(block):
            scf.YieldOp([value().value])
    return Real(branch.results[0])


def _lane_by_lane(value: ir.Value, function: type) -> ir.Value:
    result = value
    for lane in range(ir.VectorType(value.type).shape[0]):
        element = function(vector.ExtractOp(value, [], [lane]).result).result
        result = vector.InsertOp(element, result, [], [lane]).result
    return result
