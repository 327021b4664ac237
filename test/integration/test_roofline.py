"""On the target `edge`, the convolutions of ResNet-50 come close to what the machine can do.

Every distinct 1x1 and 3x3 convolution with its batch norm and ReLU is compiled by itself and
simulated. (The 7x7 one at the start has three input channels for sixteen rows.)
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.choose_tiles import SCHEDULE
from mlir_npu.passes.kernels.walk import kernels, symbol
from mlir_npu.scripts.networks.capture import capture_model
from mlir_npu.simulator.result import KernelRun
from mlir_npu.simulator.simulate import simulate_module
from mlir_npu.simulator.staging import stage_module
from mlir_npu.simulator.table import GOOD_SHARE, reason

# image, input channels, output channels, window, stride
LAYERS = (
    *((56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1)),
    *((56, 256, 128, 1, 1), (56, 128, 128, 3, 2), (56, 256, 512, 1, 2), (28, 128, 512, 1, 1)),
    *((28, 512, 128, 1, 1), (28, 128, 128, 3, 1), (28, 512, 256, 1, 1), (28, 256, 256, 3, 2)),
    *((28, 512, 1024, 1, 2), (14, 256, 1024, 1, 1), (14, 1024, 256, 1, 1), (14, 256, 256, 3, 1)),
    *((14, 1024, 512, 1, 1), (14, 512, 512, 3, 2), (14, 1024, 2048, 1, 2), (7, 512, 2048, 1, 1)),
    *((7, 2048, 512, 1, 1), (7, 512, 512, 3, 1)),
)


def simulate(
    image: int, inputs: int, outputs: int, window: int, stride: int
) -> tuple[KernelRun, int]:
    """The convolution of a layer, and the cycles that tile choice expects of it."""
    model = nn.Sequential(
        nn.Conv2d(inputs, outputs, window, stride, padding=window // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ).eval()
    (region,) = capture_model(model, [torch.randn(1, inputs, image, image)], "edge").regions
    stage_module(region.module)
    (run,) = (k for k in simulate_module(region.module.operation).calls if k.kind == "conv2d")
    return run, estimate(region.module.operation, run.name)


def estimate(module: ir.Operation, name: str) -> int:
    """The cycles that tile choice expects of a kernel."""
    (kernel,) = (k for k in kernels(module) if symbol(k) == name)
    return ir.IntegerAttr(ir.DictAttr(kernel.attributes[SCHEDULE])["cycles"]).value


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: "{}px-{}-{}-{}x{}-by-{}".format(
    *layer[:4], *layer[3:]))  # fmt: skip
def test_layer_of_resnet50_reaches_its_roofline(layer: tuple[int, ...]) -> None:
    run, expected = simulate(*layer)
    image, inputs, outputs, window, stride = layer
    assert run.macs == (image // stride) ** 2 * inputs * outputs * window**2
    assert run.share >= GOOD_SHARE, f"{run.share:.0%} of {run.bounded_by}: {reason(run)}"
    assert run.cycles == pytest.approx(expected, rel=0.02)
