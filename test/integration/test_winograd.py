"""Convolutions with fewer multiplications: right, only where they may be, and switched off."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from parity import check_inference, check_training, compile_model
from torch import nn

AVX2 = Path(__file__).parents[1] / "lit" / "Inputs" / "avx2.toml"


def kernels(tmp_path: Path) -> str:
    return "".join(path.read_text() for path in tmp_path.rglob("*_stage.mlir"))


class Residual(nn.Module):
    """conv, batch norm, relu, conv, add of the input, relu."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.norm(self.first(x)))) + x)


@pytest.mark.parametrize("target", ["host", str(AVX2)])
@pytest.mark.parametrize(
    "batch, depth, channels, height, width, padding",
    [
        (1, 32, 32, 16, 24, 1),
        (1, 64, 64, 8, 8, 0),  # windows of 2
        (2, 16, 40, 14, 18, 1),  # channels that no vector divides
        (1, 64, 48, 12, 20, (2, 1)),
        (3, 24, 16, 14, 10, 0),
        (2, 32, 32, 13, 27, 1),  # windows that reach beyond the output
        (2, 24, 32, 17, 11, (0, 2)),
    ],
)
def test_layer(target, batch, depth, channels, height, width, padding, tmp_path):
    torch.manual_seed(batch)
    layer = nn.Sequential(nn.Conv2d(depth, channels, 3, padding=padding), nn.ReLU()).eval()
    x = torch.randn(batch, depth, height, width)
    options = {"target": target, "strict": True, "min_region_macs": 0, "dump_dir": str(tmp_path)}
    check_inference(layer, x, options=options)
    assert "npu.winograd_input" in kernels(tmp_path)


@pytest.mark.parametrize("threads", [1, 2])
def test_residual_block(threads):
    torch.manual_seed(0)
    x = torch.randn(2, 32, 28, 28)
    check_inference(Residual(32).eval(), x, options={"strict": True, "num_threads": threads})


def test_residual_block_of_odd_size():
    torch.manual_seed(0)
    check_inference(Residual(32).eval(), torch.randn(1, 32, 27, 29), options={"strict": True})


def test_channels_last():
    torch.manual_seed(0)
    x = torch.randn(1, 32, 28, 28).to(memory_format=torch.channels_last)
    check_inference(Residual(32).eval(), x)


def test_training_step():
    torch.manual_seed(0)
    check_training(Residual(16).eval(), torch.randn(2, 16, 16, 16, requires_grad=True))


def test_weights_that_change_are_transformed_again():
    torch.manual_seed(0)
    layer = nn.Conv2d(32, 32, 3, padding=1)
    x = torch.randn(1, 32, 16, 16)
    compiled = compile_model(layer)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), layer(x), rtol=1e-4, atol=1e-5)
        layer.weight.mul_(-3)
        torch.testing.assert_close(compiled(x), layer(x), rtol=1e-4, atol=1e-5)


def test_it_can_be_forbidden(tmp_path):
    layer, x = nn.Conv2d(32, 32, 3, padding=1).eval(), torch.randn(1, 32, 16, 16)
    check_inference(layer, x, options={"winograd": False, "dump_dir": str(tmp_path)})
    assert "npu.conv2d" in kernels(tmp_path) and "winograd" not in kernels(tmp_path)


def test_without_it_a_nan_reaches_the_outputs_that_read_it_alone():
    torch.manual_seed(0)
    layer, x = nn.Conv2d(16, 16, 3, padding=1).eval(), torch.randn(2, 16, 16, 16)
    x[0, 0, 4, 4] = torch.nan
    result = check_inference(layer, x, options={"winograd": False, "min_region_macs": 0})
    assert result.isnan().sum() == 9 * 16


def test_with_it_a_nan_reaches_the_windows_that_read_it_alone():
    torch.manual_seed(0)
    layer, x = nn.Conv2d(16, 16, 3, padding=1).eval(), torch.randn(2, 16, 16, 16)
    x[0, 0, 4, 4] = torch.nan
    with torch.no_grad():
        result, plain = compile_model(layer, min_region_macs=0)(x), layer(x)
    assert result.isnan()[plain.isnan()].all()
    assert not result[1].isnan().any() and not result[0, :, 8:, :].isnan().any()
    finite = ~result.isnan()
    torch.testing.assert_close(result[finite], plain[finite], rtol=1e-4, atol=1e-5)
