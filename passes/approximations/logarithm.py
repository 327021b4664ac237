"""log and log1p.

log(x) = log(m) + e * ln 2 with m in [sqrt(1/2), sqrt(2)); the polynomial is that of the Cephes
library's logf. Denormal x are scaled up first.
"""

from __future__ import annotations

from mlir_npu.passes.approximations.algebra import Real, polynomial
from mlir_npu.passes.approximations.exponential import LN2_HIGH, LN2_LOW

SMALLEST_NORMAL = 1.1754943508222875e-38
SCALE, SCALE_LOG2 = 8388608.0, 23
SQRT_HALF_BITS = 0x3F3504F3
INFINITY, NAN = float("inf"), float("nan")
COEFFICIENTS = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)


def log(x: Real) -> Real:
    """Within 1 ulp; -inf at zero, NaN below."""
    denormal = x.less(SMALLEST_NORMAL)
    scaled = denormal.choose(x * SCALE, x)
    bits = scaled.bits()
    exponent = (bits - SQRT_HALF_BITS) >> 23
    m = (bits - (exponent << 23)).as_real() - 1.0
    e = exponent.to_real()
    e = denormal.choose(e - float(SCALE_LOG2), e)
    square = m * m
    y = polynomial(m, COEFFICIENTS) * m * square
    y = e.times_plus(LN2_LOW, y)
    y = square.times_plus(-0.5, y)
    result = e.times_plus(LN2_HIGH, m + y)
    return _at_the_ends(x, result)


def log1p(x: Real) -> Real:
    """log(1 + x), accurate near zero: log(u) * x / (u - 1) takes back the rounding of u = 1 + x."""
    u = x + 1.0
    corrected = log(u) * (x / (u - 1.0))
    corrected = u.equals(INFINITY).choose(u, corrected)
    return u.equals(1.0).choose(x, corrected)


def _at_the_ends(x: Real, result: Real) -> Real:
    result = x.equals(INFINITY).choose(x, result)
    result = x.equals(0.0).choose(x.constant(-INFINITY), result)
    # x + result keeps NaN; below zero there is no logarithm.
    return x.less(0.0).choose(x.constant(NAN), x.equals(x).choose(result, x))
