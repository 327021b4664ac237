"""exp, expm1 and tanh.

exp(x) = 2^n * exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2; ln 2 is split in two so that r
is exact (Cody and Waite). The polynomial for (exp(r) - 1 - r) / r^2 is that of the Cephes
library's expf. n is read from the bits of x / ln 2 + 1.5 * 2^23, which has no undefined case for
NaN.
"""

from __future__ import annotations

from mlir_npu.passes.approximations.algebra import Real, Whole, polynomial

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
ROUNDER, ROUNDER_BITS = 12582912.0, 0x4B400000
REMAINDER = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
# exp is 0 below and infinite above.
LOWEST, HIGHEST = -104.0, 89.0
# tanh is 1 in f32 from here on.
SATURATED = 9.1


def exp(x: Real) -> Real:
    """Within 1 ulp, denormal results included."""
    n, tail = _reduce(x.clamp(LOWEST, HIGHEST))
    # 2^n has no f32 for n < -126 or n > 127, but each half of it has.
    half = n >> 1
    return (tail + 1.0) * _power_of_two(half) * _power_of_two(n - half)


def expm1(x: Real) -> Real:
    """exp(x) - 1, accurate near zero."""
    n, tail = _reduce(x.clamp(-LOG_LIMIT, HIGHEST))
    half = n >> 1
    scale = _power_of_two(half)
    # 2^n * (1 + tail) - 1 with the ones taken together first.
    small = tail.times_plus(_power_of_two(n), _power_of_two(n) - 1.0)
    large = (tail + 1.0) * scale * _power_of_two(n - half)
    result = x.less(LARGE).choose(small, large)
    return abs(x).less(TINY).choose(x, result)


def tanh(x: Real) -> Real:
    """expm1(2|x|) / (expm1(2|x|) + 2) with the sign of x; within 3 ulp."""
    n, tail = _reduce(abs(x).clamp(0.0, SATURATED) * 2.0)
    scale = _power_of_two(n)
    grown = tail.times_plus(scale, scale - 1.0)
    return (grown / (grown + 2.0)).with_sign_of(x)


# expm1 is -1 in f32 below -LOG_LIMIT, exp(x) itself above LARGE, x itself within TINY.
LOG_LIMIT, LARGE, TINY = 20.0, 60.0, 1e-10


def _reduce(x: Real) -> tuple[Whole, Real]:
    """n and exp(r) - 1."""
    shifted = x.times_plus(LOG2_E, ROUNDER)
    whole = shifted - ROUNDER
    r = whole.times_plus(-LN2_LOW, whole.times_plus(-LN2_HIGH, x))
    tail = polynomial(r, REMAINDER).times_plus(r * r, r)
    return shifted.bits() - ROUNDER_BITS, tail


def _power_of_two(n: Whole) -> Real:
    """2^n for -126 <= n <= 127."""
    return ((n + 127) << 23).as_real()
