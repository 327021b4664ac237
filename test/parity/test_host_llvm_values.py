"""Host parts against eager on the values where lowerings go wrong: NaN, infinities, -0, limits.

Each test compiles one graph with one output for every call, and compares output by output.
"""

import pytest
import torch
from host_calls import (
    FLOATS,
    HALVES,
    INTEGERS,
    NAN,
    SPECIAL_FLOATS,
    SPECIAL_INTEGERS,
    UNARY,
    assert_matches,
    compile_host,
    pairs,
)
from torch.nn import functional as F

aten = torch.ops.aten


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "where": lambda x, y: torch.where(x < y, x, y),
    "logical and": torch.logical_and,
    "logical or": torch.logical_or,
    "logical xor": torch.logical_xor,
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.5),
}


INTEGER_UNARY = {
    "abs": torch.abs,
    "neg": torch.neg,
    "sign": torch.sign,
    "sgn": torch.sgn,
    "x + 3": lambda x: x + 3,
    "x * 3": lambda x: x * 3,
    "x + 0.1": lambda x: x + 0.1,
    "x > 1": lambda x: x > 1,
    "x == 7": lambda x: x == 7,
    "x <= -1": lambda x: x <= -1,
    "clamp": lambda x: x.clamp(-3, 900),
    "~x": torch.bitwise_not,
    "to f32": lambda x: x.to(torch.float32),
    "to f64": lambda x: x.to(torch.float64),
    "to bool": lambda x: x.to(torch.bool),
    "to i32": lambda x: x.to(torch.int32) + 0,
    "to i64": lambda x: x.to(torch.int64) + 0,
}


INTEGER_BINARY = {
    name: BINARY[name]
    for name in (
        *("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "where"),
        *("logical and", "logical or", "logical xor"),
    )
} | {
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}


BOOLEAN = {
    "and": torch.logical_and,
    "or": torch.logical_or,
    "xor": torch.logical_xor,
    "eq": torch.eq,
    "not": lambda x, y: torch.logical_not(x),
    "ne": torch.ne,
    "mul": torch.mul,
    "&": torch.bitwise_and,
    "|": torch.bitwise_or,
    "^": torch.bitwise_xor,
    "~": lambda x, y: ~x,
    "where": lambda x, y: torch.where(x, y, ~y),
    "to f32": lambda x, y: x.to(torch.float32),
    "to i64": lambda x, y: x.to(torch.int64),
}


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_floats(dtype):
    assert_matches(UNARY, torch.tensor(SPECIAL_FLOATS, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_floats_between(dtype):
    assert_matches(UNARY, torch.linspace(-20, 20, 1001, dtype=dtype), ulps=8)


@pytest.mark.parametrize("dtype", FLOATS)
def test_binary_floats(dtype):
    assert_matches(BINARY, *pairs(SPECIAL_FLOATS, dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_unary_halves(dtype):
    # eager's erf of halves is 2 % off near 0
    calls = {name: call for name, call in UNARY.items() if name != "erf"}
    assert_matches(calls, torch.tensor(SPECIAL_FLOATS, dtype=dtype), ulps=1)
    assert_matches(calls, torch.linspace(-20, 20, 1001).to(dtype), ulps=1)
    assert_matches({"erf": torch.erf}, torch.linspace(0.1, 5, 101).to(dtype), ulps=1)
    assert_matches({"1.7": lambda x: x**1.7}, torch.linspace(0.1, 5, 101).to(dtype), ulps=1)


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate, dtype):
    """1 + erf(x) cancels below 0, in eager as here: what is left of it is relative to 1."""
    x = torch.linspace(-20, 20, 1001).to(dtype)
    (actual,) = compile_host(lambda x: F.gelu(x, approximate=approximate), x)(x)
    eps = torch.finfo(dtype).eps
    expected = F.gelu(x, approximate=approximate)
    torch.testing.assert_close(actual, expected, rtol=2 * eps, atol=8 * eps)
    ends = torch.tensor([0.0, -0.0, 1e4, -1e4, NAN], dtype=dtype)
    (actual,) = compile_host(lambda x: F.gelu(x, approximate=approximate), ends)(ends)
    # Eager has both signs of 0, by the CPU's vector unit; -0 is the limit.
    expected = torch.tensor([0.0, -0.0, 1e4, -0.0, NAN], dtype=dtype)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    assert actual[:4].signbit().tolist() == expected[:4].signbit().tolist()


@pytest.mark.parametrize("dtype", HALVES)
def test_binary_halves(dtype):
    assert_matches(BINARY, *pairs(SPECIAL_FLOATS, dtype), ulps=1)


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_of_doubles(dtype):
    """They are rounded twice: what is nearest to f32 first decides ties."""
    ties = [1 + torch.finfo(dtype).eps / 2 + 2**-40, 1 + torch.finfo(dtype).eps / 2]
    x = torch.tensor([*SPECIAL_FLOATS, *ties], dtype=torch.float64)
    assert_matches({"converted": lambda x: x.to(dtype)}, x, ulps=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_power_and_scaled_sum(dtype):
    finite = [v for v in SPECIAL_FLOATS if abs(v) < 1e5]
    calls = {
        "1.7": lambda x, y: x**1.7,
        "5": lambda x, y: x**5,
        "pow": torch.pow,
        "alpha": lambda x, y: torch.add(x, y, alpha=3),
    }
    assert_matches(calls, *pairs(finite, dtype), ulps=16)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_unary_integers(dtype):
    assert_matches(INTEGER_UNARY, torch.tensor(SPECIAL_INTEGERS, dtype=dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_binary_integers_wrap(dtype):
    assert_matches(INTEGER_BINARY, *pairs(SPECIAL_INTEGERS, dtype))


def test_booleans():
    assert_matches(BOOLEAN, *pairs((False, True), torch.bool))
