"""bfloat16 and float16 on the NPU: as far from float64 as eager is, and autocast."""

import copy

import pytest
import torch
from parity import compile_model
from torch import nn

import mlir_npu
from mlir_npu.lowering.report import collect

HALVES = [torch.bfloat16, torch.float16]
named = pytest.mark.parametrize("dtype", HALVES, ids=["bf16", "f16"])


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 1)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.norm(self.first(x)))) + x * 0.5)


def tokens() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Conv2d(8, 16, 4, 4),
        nn.Flatten(2),
        nn.Linear(25, 16),
        nn.LayerNorm(16),
        layer,
        nn.GELU(),
    )


NETWORKS = {
    "convolutions": lambda: nn.Sequential(
        nn.Conv2d(8, 16, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(16, 16, 3, stride=2, groups=16),
        nn.Hardswish(),
        nn.Conv2d(16, 8, 1),
        nn.AvgPool2d(2),
    ),
    "residual": Residual,
    "pooled": lambda: nn.Sequential(
        nn.Conv2d(8, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
        nn.Softmax(1),
    ),
    "transposed": lambda: nn.Sequential(
        nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1), nn.Tanh(), nn.ReflectionPad2d(1)
    ),
    "tokens": tokens,
}


def error(values: torch.Tensor, exact: torch.Tensor) -> float:
    """Relative to the largest value."""
    return ((values.double() - exact).abs().max() / exact.abs().max()).item()


def assert_as_exact(ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    """Not further from float64 than eager is, but for a rounding."""
    assert ours.dtype == eager.dtype
    assert ours.stride() == eager.stride()
    step = torch.finfo(ours.dtype).eps
    assert error(ours, exact) <= 1.5 * error(eager, exact) + step


@named
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_inference(name, dtype, channels_last):
    model = NETWORKS[name]().eval().to(dtype)
    x = torch.randn(2, 8, 20, 20, dtype=dtype)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    with torch.no_grad(), collect() as reports:
        ours, eager = compile_model(model)(x), model(x)
        exact = copy.deepcopy(model).double()(x.double())
    assert_as_exact(ours, eager, exact)
    parts = [part for report in reports for part in report.parts if part.conv_macs]
    assert [part.engine for part in parts] == ["npu"]


@named
@pytest.mark.parametrize("name", ["convolutions", "residual", "transposed"])
def test_training(name, dtype):
    model = NETWORKS[name]().train().to(dtype)
    exact_model, eager_model = copy.deepcopy(model).double(), copy.deepcopy(model)
    x = torch.randn(2, 8, 20, 20, dtype=dtype)

    def gradients(call, module, x):
        x = x.clone().requires_grad_()
        result = call(x)
        weights = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64).view(result.shape)
        (result * weights.to(result.dtype)).sum().backward()
        return [x.grad, *(parameter.grad for parameter in module.parameters())]

    with collect() as reports:
        ours = gradients(compile_model(model), model, x)
    eager = gradients(eager_model, eager_model, x)
    exact = gradients(exact_model, exact_model, x.double())
    for mine, theirs, wanted in zip(ours, eager, exact, strict=True):
        assert mine.dtype == theirs.dtype
        assert error(mine, wanted) <= 2 * error(theirs, wanted) + 4 * torch.finfo(dtype).eps
    kinds = {report.kind for report in reports if report.regions}
    assert kinds == {"forward", "backward"}


@named
@pytest.mark.parametrize("inside", [False, True])
def test_autocast(dtype, inside):
    """All convolutions are on the NPU, in the type that autocast gives them."""
    model = nn.Sequential(NETWORKS["residual"](), NETWORKS["pooled"]()).eval()
    x = torch.randn(2, 8, 20, 20)

    def cast(x):
        with torch.autocast("cpu", dtype=dtype):
            return model(x)

    with torch.no_grad(), collect() as reports:
        if inside:
            ours = compile_model(cast)(x)
        else:
            with torch.autocast("cpu", dtype=dtype):
                ours = compile_model(model)(x)
        eager, exact = cast(x), copy.deepcopy(model).double()(x.double())
    assert_as_exact(ours, eager, exact)
    parts = [part for report in reports for part in report.parts]
    assert all(part.engine == "npu" for part in parts if part.conv_macs)
    assert any("bfloat16" in text or "float16" in text for part in parts for text in part.outputs)


def test_training_under_autocast():
    """Statistics of batch norm are left to eager, which knows their type; convolutions are not."""
    model = nn.Sequential(NETWORKS["residual"](), nn.Conv2d(8, 4, 3)).train()
    theirs, x = copy.deepcopy(model), torch.randn(2, 8, 20, 20)
    compiled = compile_model(model)

    def step(call):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = call(x).float().square().mean()
        loss.backward()
        return loss.item()

    with collect() as reports:
        ours = step(compiled)
    expected = step(theirs)
    step_size = torch.finfo(torch.bfloat16).eps
    assert abs(ours - expected) <= step_size * expected
    for (name, mine), other in zip(model.named_parameters(), theirs.parameters(), strict=True):
        assert mine.grad.dtype == other.grad.dtype == torch.float32
        assert error(mine.grad, other.grad.double()) <= 4 * step_size, name
    parts = [part for report in reports for part in report.parts if part.conv_macs]
    assert {part.engine for part in parts} == {"npu"}


def test_halves_and_float32_in_one_region():
    conv, head = nn.Conv2d(4, 8, 3).bfloat16().eval(), nn.Conv2d(8, 4, 1).eval()

    def model(x):
        y = conv(x.bfloat16())
        return head(y.float()) + y[:, :4], y.half()

    x = torch.randn(1, 4, 16, 16)
    explanation = mlir_npu.explain(model, x)
    with torch.no_grad():
        expected = model(x)
    assert (explanation.regions, explanation.host_nodes) == (1, 0)
    for ours, theirs in zip(explanation.result, expected, strict=True):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=1e-2, atol=1e-2)


def test_sums_are_made_in_float32():
    """4096 products of 1: in bfloat16 the sum would stop at 256."""
    conv = nn.Conv2d(4096, 4, 1, bias=False).bfloat16().eval()
    nn.init.ones_(conv.weight)
    x = torch.ones(1, 4096, 4, 4, dtype=torch.bfloat16)
    with torch.no_grad(), collect() as reports:
        assert torch.equal(compile_model(conv)(x), torch.full((1, 4, 4, 4), 4096.0).bfloat16())
    assert reports[0].regions


@pytest.mark.parametrize("target", ["edge", "small"])
def test_accelerators(target):
    model, x = NETWORKS["convolutions"]().eval().bfloat16(), torch.randn(1, 8, 20, 20).bfloat16()
    with torch.no_grad(), collect() as reports:
        ours, eager = compile_model(model, target=target)(x), model(x)
        exact = copy.deepcopy(model).double()(x.double())
    assert_as_exact(ours, eager, exact)
    assert all(part.engine == "npu" for part in reports[0].parts)
