"""erf, by two polynomials: in x near zero, and as 1 - exp(-polynomial) further out.

The coefficients are N. Juffa's for single precision, 1 ulp off when evaluated with FMA.
"""

from __future__ import annotations

from mlir_npu.passes.approximations.algebra import Real, polynomial
from mlir_npu.passes.approximations.exponential import exp

BORDER = 0.921875
# erf is 1 in f32 from here on.
SATURATED = 4.0
NEAR = (
    -5.96761703e-4,
    4.99119423e-3,
    -2.67681349e-2,
    1.12819925e-1,
    -3.76125336e-1,
    1.28379166e-1,
)
FAR = (
    -1.72853470e-5,
    3.83197126e-4,
    -3.88396438e-3,
    2.42546219e-2,
    -1.06777877e-1,
    -6.34846687e-1,
    -1.28717512e-1,
)


def erf(x: Real) -> Real:
    """Within 2 ulp."""
    t = abs(x).clamp(0.0, SATURATED)
    near = polynomial(x * x, NEAR).times_plus(x, x)
    exponent = polynomial(t, FAR).times_plus(t, -t)
    far = (-(exp(exponent) - 1.0)).with_sign_of(x)
    return t.less(BORDER).choose(near, far)
