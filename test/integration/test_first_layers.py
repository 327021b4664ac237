"""Convolutions of few channels between tensors with the channels first: vectors of columns.

Small integers, so that sums are exact and every wrong element is seen.
"""

from pathlib import Path

import pytest
import torch
from parity import check_inference, compile_model
from torch import nn

AVX2 = str(Path(__file__).parents[1] / "lit" / "Inputs" / "avx2.toml")


def layer(inputs: int, outputs: int, kernel: int = 3, **arguments) -> nn.Module:
    model = nn.Sequential(nn.Conv2d(inputs, outputs, kernel, **arguments), nn.ReLU()).eval()
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0)
        parameter.data += torch.randint(-3, 4, parameter.shape)
    return model


def image(*shape: int) -> torch.Tensor:
    return torch.randint(-4, 5, shape).float()


def check(model: nn.Module, x: torch.Tensor, target: str = "host") -> None:
    actual = check_inference(model, x, options={"min_region_macs": 0, "target": target})
    with torch.no_grad():
        assert torch.equal(actual, model(x))


@pytest.mark.parametrize("target", ["host", AVX2])
@pytest.mark.parametrize("stride, padding", [(1, 1), (2, 0), (2, 1), ((1, 2), 2)])
def test_widths(target, stride, padding):
    """Widths that fill vectors, that leave some columns or all but one, and narrow ones."""
    model = layer(3, 20, stride=stride, padding=padding)
    for width in (13, 32, 63, 64, 79, 111, 128):
        check(model, image(2, 3, 9, width), target)


@pytest.mark.parametrize(
    "inputs, outputs, kernel, arguments",
    [
        (1, 1, 3, dict(padding=1)),
        (1, 5, 3, dict(padding=1)),
        (2, 48, 5, dict(padding=2, stride=2)),
        (4, 16, 3, dict(padding=2, dilation=2)),
        (3, 33, (1, 3), dict(padding=(0, 1), bias=False)),
        (3, 16, 3, dict(stride=3)),
        (16, 32, 3, dict(padding=1, stride=2)),
    ],
    ids=str,
)
def test_channels_and_windows(inputs, outputs, kernel, arguments):
    check(layer(inputs, outputs, kernel, **arguments), image(1, inputs, 21, 96))


def test_image_that_begins_within_a_line():
    """At an odd offset, as a part of a larger image."""
    model = layer(3, 16, padding=1)
    check(model, image(3 * 20 * 64 + 3)[3:].view(1, 3, 20, 64))
    check(model, image(1, 3, 24, 71)[:, :, 1:21, 3:67])


class Residual(nn.Module):
    """A first layer whose result meets another tensor before it is stored."""

    def __init__(self):
        super().__init__()
        self.conv = layer(3, 16, padding=1)[0]

    def forward(self, x, other):
        return torch.relu(self.conv(x) + other)


def test_second_operand():
    x, other = image(1, 3, 8, 64), image(1, 16, 8, 64)
    check_inference(Residual(), x, other, options={"min_region_macs": 0})


@pytest.mark.parametrize("target", ["host", AVX2])
def test_nothing_is_transposed(tmp_path, target):
    model, x = layer(3, 16, padding=1), image(1, 3, 32, 64)
    compiled = compile_model(model, min_region_macs=0, target=target, dump_dir=str(tmp_path))
    with torch.no_grad():
        compiled(x)
    (path,) = tmp_path.rglob("07_allocate.mlir")
    kernel = path.read_text().split("func.func private @conv2d")[1].split("func.func")[0]
    assert kernel.count("npu.dma_start") == 1
    assert kernel.count("memref.transpose") == 2
    assert "permutation = array<i64: 0, 1, 2, 3>" in kernel
