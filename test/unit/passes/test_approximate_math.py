"""Polynomial functions against float64, over all magnitudes of f32, and at the ends."""

import math

import numpy as np
import pytest
from jit import Function, memref_type
from npu_text import eltwise, function, identity_map

LIMITS = {"exp": 1.5, "expm1": 2.5, "tanh": 3, "erf": 2.5, "log": 1.5, "log1p": 3} | {
    "sin": 1.5,
    "cos": 1.5,
}
REFERENCES = {
    "exp": np.exp,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
}
# They call the library for arguments so large that f64 cannot reduce them.
LANE_BY_LANE = {"sin", "cos"}
RNG = np.random.default_rng(5)


def evaluate(name, values):
    shape = values.shape
    type_, same = memref_type(shape, "sram"), identity_map(1)
    body = f"%r = math.{name} %in0 : f32"
    op = eltwise([("x_t", same, type_)], ("o_t", same, type_), body, "%r")
    text = function({"x": shape, "o": shape}, None, op)
    compiled = Function(text)
    out = np.full(shape, 123, np.float32)
    compiled(np.ascontiguousarray(values), out)
    if name not in LANE_BY_LANE:
        assert f"math.{name}" not in compiled.vector_text
    return out


def samples():
    """Values of every exponent and sign, and dense ones where functions bend."""
    bits = RNG.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    dense = np.linspace(-110, 110, 100_001, dtype=np.float32)
    near = np.linspace(-2, 2, 100_001, dtype=np.float32)
    values = np.concatenate([bits, dense, near])
    return values[np.isfinite(values)]


def errors_in_ulp(got, exact):
    """Distance in spacings of f32 at the exact result."""
    with np.errstate(over="ignore"):
        spacing = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - exact) / spacing


@pytest.mark.parametrize("name", LIMITS)
def test_error_is_a_few_ulp(name):
    x = samples()
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
        rounded = exact.astype(np.float32)
    got = evaluate(name, x)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    errors = errors_in_ulp(got[~special], exact[~special])
    worst = errors.argmax()
    assert errors[worst] <= LIMITS[name], (x[~special][worst], got[~special][worst], errors[worst])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_zeros_of_sin_and_cos_keep_their_digits(name):
    """f32 next to multiples of pi / 2: what is left of them is small."""
    multiples = np.arange(1, 70_000, 3) * (np.pi / 2)
    bits = multiples.astype(np.float32).view(np.int32)
    x = np.concatenate([(bits + step).view(np.float32) for step in range(-2, 3)])
    x = np.concatenate([x, -x])
    exact = REFERENCES[name](x.astype(np.float64))
    assert errors_in_ulp(evaluate(name, x), exact).max() <= LIMITS[name]


@pytest.mark.parametrize("name", LIMITS)
def test_ends(name):
    tiny = np.float32(1e-42)
    x = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny, 1, -1, 88.7, -103.9, 3e38, -3e38],
        np.float32,
    )
    with np.errstate(all="ignore"):
        want = REFERENCES[name](x.astype(np.float64)).astype(np.float32)
    got = evaluate(name, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    if name not in ("exp", "log", "cos"):
        assert np.signbit(got[1]) and got[1] == 0
    smallest = 2e-45 if name in ("exp", "erf") else 0  # a denormal number off
    np.testing.assert_allclose(got, want, rtol=5e-7, atol=smallest)


def power(x, y):
    type_, same = memref_type(x.shape, "sram"), identity_map(1)
    operands = [("x_t", same, type_), ("y_t", same, type_)]
    op = eltwise(operands, ("o_t", same, type_), "%r = math.powf %in0, %in1 : f32", "%r")
    compiled = Function(function({"x": x.shape, "y": x.shape, "o": x.shape}, None, op))
    out = np.full(x.shape, 123, np.float32)
    compiled(np.ascontiguousarray(x), np.ascontiguousarray(y), out)
    return out


def test_power_is_within_an_ulp():
    x = RNG.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    y = RNG.uniform(-40, 40, x.shape).astype(np.float32)
    y[::3] = np.round(y[::3])
    near = np.exp(np.clip(RNG.uniform(-80, 80, x.shape) / np.abs(y + 1e-3), -80, 80))
    near = near.astype(np.float32)
    x = np.concatenate([x, near])
    y = np.concatenate([y, y])
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) ** y.astype(np.float64)
        rounded = exact.astype(np.float32)
    got = power(x, y)
    special = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    assert errors_in_ulp(got[~special], exact[~special]).max() <= 1


def test_power_at_the_ends():
    numbers = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        16777217.0,
        3e38,
        -3e38,
        1e-40,
    ]
    numbers += [np.inf, -np.inf, np.nan]
    x, y = (np.array(v, np.float32).ravel() for v in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        expected = np.array([np.float32(np.float64(a) ** np.float64(b)) for a, b in zip(x, y)])
    got = power(x, y)
    np.testing.assert_array_equal(got, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))
