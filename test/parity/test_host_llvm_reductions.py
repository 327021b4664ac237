"""Reductions of host parts: special values, halves, integers that wrap."""

import itertools

import pytest
import torch
from host_calls import (
    FLOAT_REDUCTIONS,
    FLOATS,
    HALVES,
    INF,
    INTEGERS,
    NAN,
    REDUCTIONS,
    assert_matches,
)


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_added_up_in_single_precision(dtype):
    """Thousands of small addends: a sum in halves would stop growing."""
    assert_matches(FLOAT_REDUCTIONS, torch.rand(2, 3, 4, dtype=dtype), ulps=2)
    calls = {n: FLOAT_REDUCTIONS[n] for n in ("sum", "sum dim", "mean", "var dim", "softmax")}
    assert_matches(calls, torch.rand(16, 300, 20).to(dtype), ulps=2)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_reductions(dtype):
    assert_matches(REDUCTIONS, torch.randint(-(2**30), 2**30, (2, 3, 4), dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_reductions(dtype):
    assert_matches(FLOAT_REDUCTIONS, torch.randn(2, 3, 4, dtype=dtype), ulps=64, ulps_of_one=4)


@pytest.mark.parametrize("special", [NAN, INF, -INF])
@pytest.mark.parametrize("position", [0, 5, 23])
def test_reductions_see_one_special_value(special, position):
    x = torch.randn(24)
    x[position] = special
    calls = {n: FLOAT_REDUCTIONS[n] for n in ("sum dim", "amax", "amin", "softmax", "log_softmax")}
    assert_matches(calls, x.view(2, 3, 4), ulps=64)


def test_boolean_reductions():
    calls = {
        "any": torch.any,
        "all": torch.all,
        "any 0": lambda x: x.any(0),
        "all 1": lambda x: x.all(1),
    }
    for bits in itertools.product((False, True), repeat=4):
        assert_matches(calls, torch.tensor(bits).view(2, 2))
