"""Functions of halves, on all 65536 of them: exact to rounding, or as near as eager."""

import pytest
import torch
from host_calls import HALVES, UNARY, compile_host
from torch.nn import functional as F

SHARED = (
    "neg",
    "abs",
    "relu",
    "exp",
    "expm1",
    "log",
    "log1p",
    "erf",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "silu",
    "softplus",
    "mish",
)
FUNCTIONS = {
    **{name: UNARY[name] for name in SHARED},
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
}
# 1 + erf(x) and 1 + tanh(x) lose digits below zero, in eager too: of x, in units of f32
CANCELS = {"gelu": 2, "gelu tanh": 2}
# oneDNN's has other infinities and flushes small numbers
OWN_ENDS = {"gelu"}


def spacing(x):
    """From each number to the next larger one of its type."""
    above = (x.abs().view(torch.int16) + 1).view(x.dtype)
    return above.double() - x.abs().double()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_all_halves(dtype):
    x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    compiled = compile_host(lambda x: tuple(call(x) for call in FUNCTIONS.values()), x)
    for (name, call), actual in zip(FUNCTIONS.items(), compiled(x), strict=True):
        eager, exact = call(x), call(x.double())
        nearest = exact.float().to(dtype)
        ends = ~eager.isfinite()
        if name in OWN_ENDS:
            eager, ends = nearest, ends & ~nearest.isfinite()
        assert torch.equal(actual.isnan(), eager.isnan()), name
        assert torch.equal(actual.isinf(), eager.isinf()), name
        assert torch.equal(actual[ends].nan_to_num(0), eager[ends].nan_to_num(0)), name
        zeros = (actual == 0) & (eager == 0)
        assert torch.equal(actual[zeros].signbit(), eager[zeros].signbit()), name
        allowed = 0.51 * spacing(nearest)
        allowed += CANCELS.get(name, 0) * torch.finfo(torch.float32).eps * x.abs().double()
        allowed = torch.maximum(allowed, (eager.double() - exact).abs())
        off = (actual.double() - exact).abs() > allowed
        off &= nearest.isfinite() & actual.isfinite()
        assert not off.any(), f"{name}: {x[off][:4]} {actual[off][:4]} {nearest[off][:4]}"


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_signs_change_nothing_else(dtype):
    x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    compiled = compile_host(lambda x: (-x, x.abs()), x)
    for actual, expected in zip(compiled(x), (-x, x.abs()), strict=True):
        numbers = ~x.isnan()
        assert torch.equal(actual.view(torch.int16)[numbers], expected.view(torch.int16)[numbers])


@pytest.mark.parametrize(
    "shape", [(1,), (31,), (33,), (97,), (7, 16), (5, 40), (3, 2, 24)], ids=str
)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_lanes_keep_their_places(dtype, shape):
    """In vectors of words and in what is left; with scalars, rows and floats beside."""
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
    row, wide = torch.randn(shape[-1:], generator=generator), torch.randn(shape).exp()
    calls = (
        lambda x, y, row, wide: x * y - x.relu(),
        lambda x, y, row, wide: (x - y) * row.to(dtype),
        lambda x, y, row, wide: torch.where(x > y, x, -y) * y.amax(),
        lambda x, y, row, wide: (x * wide).to(dtype) + y,
        lambda x, y, row, wide: x + wide,
    )
    compiled = compile_host(lambda *xs: tuple(call(*xs) for call in calls), x, y, row, wide)
    for call, actual in zip(calls, compiled(x, y, row, wide), strict=True):
        assert torch.equal(actual, call(x, y, row, wide))


def test_quotients_by_one_number():
    """Of numbers from one end of the range to the other, which have no reciprocal in it."""
    sizes = torch.tensor([2.0**e for e in (-149, -127, -101, -64, 0, 3, 64, 101, 127)])
    special = torch.tensor([0.0, float("inf"), float("nan")])
    divisors = torch.cat([sizes, -sizes * 1.25, special])
    numbers = torch.cat([torch.randn(40), torch.randn(40) * 1e-38, torch.randn(40) * 1e38, special])
    x = torch.cat([numbers.expand(len(divisors), -1), torch.zeros(len(divisors), 37)], dim=1)

    def call(x, divisors):
        return (x / divisors.unsqueeze(1)).bfloat16()

    (actual,) = compile_host(lambda *xs: (call(*xs),), x.contiguous(), divisors)(x, divisors)
    expected = call(x, divisors)
    torch.testing.assert_close(actual, expected, rtol=2**-7, atol=0, equal_nan=True)
    assert (actual == expected).float().mean() > 0.8
    assert torch.equal(actual.signbit()[expected == 0], expected.signbit()[expected == 0])
