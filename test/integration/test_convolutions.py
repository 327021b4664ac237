"""Every attribute of a convolution: right, and on the NPU or refused with a reason."""

from pathlib import Path

import pytest
import torch
from parity import check_inference, compile_model
from torch import nn

import mlir_npu

AVX2 = Path(__file__).parents[1] / "lit" / "Inputs" / "avx2.toml"


def on_npu(model, x) -> bool:
    explanation = mlir_npu.explain(model, x, options={"min_region_macs": 0})
    return explanation.npu_conv_macs == explanation.conv_macs > 0


@pytest.mark.parametrize(
    "arguments",
    [
        dict(in_channels=3, out_channels=16, kernel_size=7, stride=2, padding=3),
        dict(in_channels=6, out_channels=12, kernel_size=3, padding=1, groups=3),
        dict(in_channels=8, out_channels=8, kernel_size=3, groups=8, padding=1, stride=2),
        dict(in_channels=2, out_channels=32, kernel_size=3, groups=2, padding=1),
        dict(in_channels=5, out_channels=7, kernel_size=(1, 5), dilation=(1, 2), padding=(0, 4)),
        dict(in_channels=4, out_channels=8, kernel_size=2, padding="same"),
        dict(in_channels=4, out_channels=8, kernel_size=3, padding="same", dilation=2, bias=False),
        dict(in_channels=1, out_channels=1, kernel_size=1),
        dict(in_channels=16, out_channels=24, kernel_size=3, stride=(3, 1), padding=(2, 0)),
        dict(in_channels=4, out_channels=8, kernel_size=3, padding=1, padding_mode="reflect"),
    ],
    ids=lambda a: " ".join(f"{k}={v}" for k, v in a.items()),
)
def test_conv2d(arguments):
    """peers V1, V5, V8."""
    model = nn.Sequential(nn.Conv2d(**arguments), nn.ReLU()).eval()
    x = torch.randn(2, arguments["in_channels"], 13, 15)
    check_inference(model, x, options={"min_region_macs": 0})
    assert on_npu(model, x)


class Projection(nn.Module):
    """A 1 x 1 convolution, batch norm, and the sum with a second tensor."""

    def __init__(self, inputs: int, outputs: int, stride: int | tuple[int, int] = 1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x, other):
        return torch.relu(self.norm(self.conv(x)) + other)


@pytest.mark.parametrize("target", ["host", str(AVX2)])
@pytest.mark.parametrize(
    "batch, inputs, outputs, height, width",
    [
        (1, 24, 40, 16, 16),
        (3, 5, 7, 12, 8),
        (1, 16, 33, 14, 14),  # positions that fill no vector at the end
        (2, 8, 24, 13, 13),  # and lie across lines
        (1, 3, 64, 1, 27),
        (1, 64, 16, 55, 55),
    ],
)
def test_pointwise_between_tensors_with_channels_first(
    target, batch, inputs, outputs, height, width, tmp_path
):
    torch.manual_seed(batch)
    x, other = torch.randn(batch, inputs, height, width), torch.randn(batch, outputs, height, width)
    options = {"target": target, "min_region_macs": 0, "dump_dir": str(tmp_path)}
    check_inference(Projection(inputs, outputs).eval(), x, other, options=options)
    stages = "".join(path.read_text() for path in tmp_path.rglob("*_stage.mlir"))
    assert "pointwise_conv2d" in stages


@pytest.mark.parametrize("stride, height, width", [(2, 28, 27), ((1, 3), 14, 21), ((2, 1), 9, 16)])
def test_pointwise_with_strides(stride, height, width, tmp_path):
    model, x = Projection(16, 40, stride).eval(), torch.randn(2, 16, height, width)
    other = torch.randn_like(model.conv(x))
    check_inference(model, x, other, options={"min_region_macs": 0, "dump_dir": str(tmp_path)})
    stages = "".join(path.read_text() for path in tmp_path.rglob("*_stage.mlir"))
    assert "pointwise_conv2d" in stages


@pytest.mark.parametrize("threads", [1, 2])
def test_pointwise_layers_and_changed_weights(threads):
    model = nn.Sequential(nn.Conv2d(16, 48, 1), nn.SiLU()).eval()
    compiled = compile_model(model, num_threads=threads, min_region_macs=0)
    for size in (28, 20):
        x = torch.randn(1, 16, size, size)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
            model[0].weight.mul_(-2)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 4, 8])
def test_conv1d(groups):
    """peers V4."""
    model = nn.Sequential(nn.Conv1d(8, 16, 5, stride=2, padding=2, groups=groups), nn.GELU()).eval()
    x = torch.randn(2, 8, 33)
    check_inference(model, x, options={"min_region_macs": 0})
    assert on_npu(model, x)


def test_asymmetric_padding_then_stride():
    """peers V6."""
    conv = nn.Conv2d(4, 8, 3, stride=2).eval()
    check_inference(lambda x: conv(nn.functional.pad(x, (0, 1, 0, 1))), torch.randn(1, 4, 12, 12))


@pytest.mark.parametrize(
    "model",
    [
        nn.ConvTranspose2d(4, 8, 3),
        nn.ConvTranspose2d(4, 8, 3, groups=2, bias=False),
        nn.ConvTranspose2d(4, 4, 3, groups=4, stride=2, output_padding=1),
        nn.ConvTranspose2d(4, 8, 2, stride=2),
        nn.ConvTranspose2d(4, 8, (4, 3), stride=(2, 1), padding=1, dilation=(1, 2)),
    ],
    ids=["plain", "grouped", "depthwise", "upsampling", "mixed"],
)
def test_transposed_convolution(model):
    """peers P10, V2, V3."""
    x = torch.randn(1, 4, 9, 9)
    check_inference(model.eval(), x, options={"min_region_macs": 0})
    assert on_npu(model, x)


def test_transposed_conv1d():
    model, x = nn.ConvTranspose1d(4, 6, 4, stride=2, padding=1).eval(), torch.randn(2, 4, 17)
    check_inference(model, x, options={"min_region_macs": 0})
    assert on_npu(model, x)


@pytest.mark.parametrize("model", [nn.Conv3d(2, 4, 3, groups=2), nn.ConvTranspose3d(2, 4, 3)])
def test_conv3d_runs_on_the_npu(model):
    """peers P10, V4."""
    x = torch.randn(1, 2, 5, 6, 7)
    check_inference(model.eval(), x)
    assert on_npu(model, x)


def test_float64_runs_on_the_host_with_a_reason():
    """peers V8, D1, D4."""
    model, x = nn.Conv2d(4, 8, 3, bias=False).double().eval(), torch.randn(1, 4, 9, 9).double()
    with torch.no_grad():
        explanation = mlir_npu.explain(model, x)
        torch.testing.assert_close(explanation.result, model(x))
    assert explanation.regions == 0
    reasons = " ".join(r.reason for r in explanation.graphs[0].rejections)
    assert "float64" in reasons


SPECIAL = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, -3.0, 7.0])


@pytest.mark.parametrize(
    "activation",
    [
        torch.relu,
        nn.functional.relu6,
        nn.functional.hardtanh,
        nn.functional.leaky_relu,
        torch.sigmoid,
        nn.functional.silu,
        nn.functional.hardswish,
        torch.tanh,
        lambda x: torch.clamp(x, min=-1.0),
        lambda x: torch.clamp(x, max=2.0),
        lambda x: nn.functional.max_pool2d(x, 2, stride=1, padding=1),
    ],
    ids=lambda f: getattr(f, "__name__", "f"),
)
def test_special_values(activation):
    """peers V12: NaN, infinities, signed zeros and denormals come out as in eager."""
    x = SPECIAL.view(1, 8, 1, 1).repeat(1, 1, 4, 16).contiguous()
    check_inference(activation, x, options={"min_region_macs": 0})


def test_special_values_of_gelu():
    """Without infinities, for which eager itself gives infinity or NaN, depending on the size."""
    x = SPECIAL[~SPECIAL.isinf()].view(1, 6, 1, 1).repeat(1, 1, 4, 16).contiguous()
    check_inference(nn.functional.gelu, x, options={"min_region_macs": 0})
