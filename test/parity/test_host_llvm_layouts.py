"""Host parts in all layouts, what moves data, and what is refused."""

import pytest
import torch
from host_calls import FLOATS, HALVES, INTEGERS, assert_matches, compile_host
from torch.nn import functional as F

from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering.fallback.llvm_ops import ALLOWED

MOVEMENT = {
    "view": lambda x: x.view(4, 6) * 1,
    "permute": lambda x: x.permute(2, 0, 1).clone(),
    "transpose": lambda x: x.transpose(0, 1).contiguous(),
    "expand": lambda x: x[:, :1].expand(2, 5, 4) * 1,
    "cat": lambda x: torch.cat([x, x[:, 1:]], 1),
    "stack": lambda x: torch.stack([x, x], 1),
    "slice": lambda x: x[:, 1:3, ::2].clone(),
    "select": lambda x: x[1].clone(),
    "pad": lambda x: F.pad(x, (1, 2), value=1),
    "flip": lambda x: x.flip(0, 2),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "split": lambda x: x.split(2, 2)[1].clone(),
    "unbind": lambda x: x.unbind(1)[2].clone(),
    "squeeze": lambda x: x[:1].squeeze(0).clone(),
    "unsqueeze": lambda x: x.unsqueeze(1) + x[:, None],
    "full": lambda x: torch.full_like(x, 2),
    "zeros": lambda x: torch.zeros_like(x),
    "tril": lambda x: x.tril(),
    "chunk": lambda x: x.chunk(3, 1)[2] + 0,
}


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES, *INTEGERS])
def test_movement(dtype):
    assert_matches(MOVEMENT, torch.arange(24).view(2, 3, 4).to(dtype))


@pytest.mark.parametrize(
    ("call", "tensors", "limit"),
    [
        (torch.exp, [torch.ones(1024, dtype=torch.float64)], 1024),
        (lambda x: torch.cat([x, x]), [torch.ones(8192)], 16384),
    ],
)
def test_what_eager_does_faster_runs_there(call, tensors, limit):
    assert_matches({"within": call}, *tensors)
    larger = [torch.cat([x, x[:1]]) for x in tensors]
    with pytest.raises(HostLoweringError, match=f"eager is faster above {limit}"):
        compile_host(call, *larger)


@pytest.mark.parametrize(
    ("call", "tensors", "reason"),
    [
        (torch.mm, [torch.ones(2, 2)] * 2, "aten.mm.default is not in the list"),
        (torch.fmod, [torch.ones(2)] * 2, "aten.fmod.Tensor is not in the list"),
        (lambda x: x + 1, [torch.ones(2, dtype=torch.int8)], "not verified for int8"),
        (lambda x: x // 2, [torch.ones(2, dtype=torch.int64)], "not in the list"),
        (lambda x: x.to(torch.int64), [torch.ones(2)], "converts floats to int64"),
        (lambda x: x > 0.5, [torch.ones(2, dtype=torch.int32)], "integers with the float 0.5"),
        (torch.add, [torch.ones(2), torch.ones(2, dtype=torch.int64)], "mixes float32, int64"),
        (lambda x, i: x[i], [torch.ones(2), torch.tensor([5])], "aten.index.Tensor"),
        (torch.atan, [torch.ones(2)], "aten.atan.default is not in the list"),
        (lambda x: x, [torch.ones(2)], "computes no tensor"),
    ],
)
def test_what_is_not_verified_is_refused(call, tensors, reason):
    with pytest.raises(HostLoweringError, match=reason):
        compile_host(call, *tensors)


def test_every_allowed_call_is_one_that_exists_and_is_functional():
    for overload in ALLOWED:
        assert not overload._schema.is_mutable, overload


def test_strided_inputs_and_outputs():
    x = torch.randn(4, 6)[:, ::2]
    y = torch.randn(3, 4).t()
    compiled = compile_host(lambda x, y: (x + y, (x * y).t()), x, y)
    for actual, expected in zip(compiled(x, y), (x + y, (x * y).t()), strict=True):
        assert torch.equal(actual, expected)
        assert actual.stride() == expected.stride()


LAYOUTS = {
    "transposed": lambda x: x.transpose(0, 2),
    "channels last": lambda x: x.permute(0, 2, 1).contiguous().permute(0, 2, 1),
    "every other": lambda x: x[:, ::2],
    "expanded": lambda x: x[:, :1].expand(x.shape),
    "offset": lambda x: x[1:, 1:, 1:],
    "one column": lambda x: x[:, :, :1],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype):
    """Chains, reductions and masks where lanes are strided, repeated or too few for a vector."""
    x = (torch.randn(5, 13, 37) * 8).to(dtype)
    calls = {
        "chain": lambda x, y: (x + y) * x - 3,
        "mask": lambda x, y: torch.where((x < y) & (y > 0), x, y),
        "sum": lambda x, y: (x * y).sum(0),
        "amax": lambda x, y: x.amax(1),
        "sums": lambda x, y: (x - y).sum((1, 2)),
    }
    if dtype.is_floating_point:
        calls["softmax"] = lambda x, y: torch.softmax(x, 1)
        calls["norm"] = lambda x, y: F.layer_norm(x, x.shape[2:]) * y
    x = LAYOUTS[layout](x)
    y = LAYOUTS[layout]((torch.randn(5, 13, 37) * 8).to(dtype))
    compiled = compile_host(lambda *xs: tuple(call(*xs) for call in calls.values()), x, y)
    for name, actual, call in zip(calls, compiled(x, y), calls.values(), strict=True):
        expected = call(x, y)
        assert actual.stride() == expected.stride(), name
        tolerance = 2e-2 if dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=10 * tolerance)
