"""Host parts over many elements: every one is counted once, and sums keep their digits."""

import pytest
import torch
from host_calls import assert_matches, compile_host


@pytest.mark.parametrize("length", [1, 7, 16, 17, 63, 64, 65, 100, 129, 1000, 4099])
def test_every_element_of_odd_lengths(length):
    """Whole vectors, what is left over, and tiles that reach over the end."""
    x = torch.arange(3 * length, dtype=torch.float32).view(3, length) % 1021
    calls = {
        "chain": lambda x: x * 2 + 1,
        "sum": lambda x: x.sum(1),
        "columns": lambda x: x.sum(0),
        "all": lambda x: x.sum(),
        "amax": lambda x: x.amax(0),
        "centred": lambda x: x - x.amin(1, keepdim=True),
        "any": lambda x: (x > 1000).any(1),
    }
    compiled = compile_host(lambda x: tuple(call(x) for call in calls.values()), x)
    for name, actual, call in zip(calls, compiled(x), calls.values(), strict=True):
        assert torch.equal(actual, call(x)), name


@pytest.mark.parametrize("shape", [(100_003,), (65536,), (7, 20_011), (20_011, 7), (9000, 70)])
def test_long_reductions(shape):
    """They are taken in parts, of which the last may be smaller. Whole numbers add up exactly."""
    x = torch.randint(-8, 9, shape).float()
    calls = {"sum": torch.sum, "amax": lambda x: x.amax(0), "columns": lambda x: x.sum(0)}
    assert_matches(calls, x, ulps=0)
    assert_matches(calls, x.long(), ulps=0)
    assert_matches({"any": torch.any, "all": torch.all}, x > 7)


@pytest.mark.parametrize("shape", [(17, 150), (40, 70), (3, 41, 130), (2, 1100, 96), (2500, 260)])
def test_reductions_over_rows(shape):
    """Rows are taken in blocks, of which the last has fewer, and some are split over threads."""
    dim = len(shape) - 2
    x = torch.randint(-8, 9, shape).float()
    calls = {
        "sum": lambda x: x.sum(dim),
        "amin": lambda x: x.amin(dim),
        "of two": lambda x: ((x[..., 1:] - x[..., :-1]) * 2).sum(dim),
        "of a row": lambda x: (x + x.select(dim, 0).unsqueeze(dim)).amax(dim),
        "outer too": lambda x: x.sum(tuple(range(dim + 1))),
    }
    assert_matches(calls, x, ulps=0)
    reductions = {"sum": calls["sum"], "amin": calls["amin"]}
    for dtype in (torch.int64, torch.float64, torch.bfloat16):
        assert_matches(reductions, (x.abs() % 3).to(dtype), ulps=1)
    assert_matches({"any": lambda x: x.any(dim), "all": lambda x: x.all(dim)}, x > 7)
    x[..., shape[dim] - 1, 5] = float("nan")
    assert_matches(reductions, x, ulps=0)


def test_long_sums_lose_no_digits():
    x = torch.rand(1 << 20) + 0.5
    sums = (lambda x: x.sum(), lambda x: x.view(-1, 4).sum(0), lambda x: x.view(-1, 256).sum(0))
    compiled = compile_host(lambda x: tuple(call(x) for call in sums), x)
    for actual, exact in zip(compiled(x), (call(x.double()) for call in sums), strict=True):
        torch.testing.assert_close(actual.double(), exact, rtol=1e-6, atol=0)
