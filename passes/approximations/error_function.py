"""erf(x) = 1 - 2^-y with y = x * polynomial(x) for positive x: no other formula near zero.

2^-y = 2^n * 2^r with n = round(-y) and |r| <= 1/2. 1 - 2^n and 2^n * (2^r - 1) are subtracted last;
where erf is small, the first is exactly 0, and where it is nearly 1, what it lacks has as many
digits as the polynomials give. Both are minimax fits of this project: of -log2(erfc(x)) / x on
[0, 4], with errors weighed by what they change in erf, and of (2^r - 1) / r. Those for results that
are rounded to bfloat16 are good to 2^-14, in 1 - erf too.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.passes.approximations.algebra import Real, polynomial

# erf is 1 in f32 from here on.
SATURATED = 4.0
LOG2_ERFC = (
    -1.335419521278388e-5,
    1.697225513518949e-4,
    -9.129980963889946e-4,
    2.4050260651419355e-3,
    -2.314163411477211e-4,
    -2.7632023119208603e-2,
    1.4827706462716125e-1,
    9.184476254367744e-1,
    1.6279070351260465,
)
EXP2 = (
    1.5403512225020677e-4,
    1.3390735257416964e-3,
    9.618237614631653e-3,
    5.550357326865196e-2,
    2.4022649228571848e-1,
    6.931471824645996e-1,
)
ROUGH_LOG2_ERFC = (
    -2.2036626759899193e-4,
    3.8900835152109554e-3,
    -3.07177279686485e-2,
    1.487736357212677e-1,
    9.187961530276573e-1,
    1.6278676987490046,
)
ROUGH_EXP2 = (
    9.618110837836097e-3,
    5.5837288270062145e-2,
    2.4023252160549136e-1,
    6.931368577804858e-1,
)
# what rounds a number to n, and has n + 127, the exponent of 2^n, in its low bits
ROUNDER = 12582912.0 + 127.0


def erf(x: Real) -> Real:
    """Within 2.5 ulp."""
    return _erf(x, LOG2_ERFC, EXP2)


def rough_erf(x: Real) -> Real:
    """For results that are rounded to bfloat16."""
    return _erf(x, ROUGH_LOG2_ERFC, ROUGH_EXP2)


def _erf(x: Real, log2_erfc: Sequence[float], exp2: Sequence[float]) -> Real:
    t = abs(x).clamp_above(SATURATED)
    minus_y = -t * polynomial(t, log2_erfc)
    shifted = minus_y + ROUNDER
    r = minus_y - (shifted - ROUNDER)
    scale = (shifted.bits() << 23).as_real()
    grown = r * polynomial(r, exp2)
    return (-scale).times_plus(grown, scale.constant(1.0) - scale).with_sign_of(x)
