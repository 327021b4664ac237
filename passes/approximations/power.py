"""pow of f32, computed in f64 as 2^(y * log2 |x|), with C's special cases.

f64 has digits to spare: a relative error of 2^-40 in the logarithm stays below a tenth of f32's
last place in the largest power. Rounding the f64 once gives overflow and denormal results too.
"""

from __future__ import annotations

from math import factorial, log

from mlir_npu.passes.approximations.algebra import Mask, Real, polynomial

INFINITY, NAN = float("inf"), float("nan")
LN2 = log(2)
# log2(m) = s * (2 / ln 2) * (1 + s^2 / 3 + s^4 / 5 ...) with s = (m - 1) / (m + 1)
LOG2 = [2 / LN2 / (2 * k + 1) for k in range(8, -1, -1)]
EXP2 = [LN2**k / factorial(k) for k in range(9, -1, -1)]
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
EXPONENT_BIAS, MANTISSA_BITS = 1023, 52
ROUNDER, ROUNDER_BITS = 6755399441055744.0, 0x4338000000000000
# 2^n is 0 or infinite in f32 beyond.
LARGEST = 200.0
# All f32 from here on are even.
EVEN = 16777216.0


def power(x: Real, y: Real) -> Real:
    """Within 1 ulp."""
    size = abs(x)
    value = _exp2(y.widened() * _log2(size.widened())).narrowed()
    value = _at_the_ends(size, y, value)
    whole = y.truncated().equals(y)
    half = y * 0.5
    odd = whole & abs(y).less(EVEN) & _differs(half.truncated(), half)
    negative = x.less(0.0)
    finite = size.less(INFINITY)
    value = (_sign_bit(x) & odd).choose(-value, value)
    fraction = negative & finite & whole.negated()
    value = fraction.choose(x.constant(NAN), value)
    value = _unordered(x, y).choose(x + y, value)
    one = x.constant(1.0)
    # pow(-1, +-inf) is 1, too
    infinite = abs(y).equals(INFINITY)
    value = (size.equals(1.0) & infinite).choose(one, value)
    return (y.equals(0.0) | x.equals(1.0)).choose(one, value)


def _log2(x: Real) -> Real:
    bits = x.bits()
    exponent = (bits - SQRT_HALF_BITS) >> MANTISSA_BITS
    m = (bits - (exponent << MANTISSA_BITS)).as_real()
    s = (m - 1.0) / (m + 1.0)
    return (polynomial(s * s, LOG2) * s) + exponent.to_real()


def _exp2(t: Real) -> Real:
    t = t.clamp(-LARGEST, LARGEST)
    shifted = t + ROUNDER
    r = t - (shifted - ROUNDER)
    n = shifted.bits() - ROUNDER_BITS
    return polynomial(r, EXP2) * ((n + EXPONENT_BIAS) << MANTISSA_BITS).as_real()


def _at_the_ends(size: Real, y: Real, value: Real) -> Real:
    """Powers of zero and of infinity."""
    zero, infinity = size.constant(0.0), size.constant(INFINITY)
    up = y.constant(0.0).less(y)
    value = size.equals(0.0).choose(up.choose(zero, infinity), value)
    return size.equals(INFINITY).choose(up.choose(infinity, zero), value)


def _sign_bit(x: Real) -> Mask:
    return x.constant(1.0).with_sign_of(x).less(0.0)


def _differs(a: Real, b: Real) -> Mask:
    return a.less(b) | b.less(a)


def _unordered(x: Real, y: Real) -> Mask:
    return (x.equals(x) & y.equals(y)).negated()
