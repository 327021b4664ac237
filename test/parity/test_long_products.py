"""Sums of long contractions are about as close to the exact sum as eager's."""

import copy

import pytest
import torch
from torch import nn

import mlir_npu

CASES = {
    "linear": (nn.Linear(4096, 48), (24, 4096)),
    "linear, odd": (nn.Linear(2503, 33), (9, 2503)),
    "one row": (nn.Linear(8192, 40), (1, 8192)),
    "1x1": (nn.Conv2d(2048, 32, 1), (1, 2048, 7, 7)),
    "3x3": (nn.Conv2d(512, 32, 3, stride=2, padding=1), (1, 512, 10, 10)),
    "3x3, small": (nn.Conv2d(256, 32, 3, padding=1), (1, 256, 5, 5)),
    "Winograd": (nn.Conv2d(1024, 64, 3, padding=1), (1, 1024, 14, 14)),
    "1-D": (nn.Conv1d(16, 32, 256), (1, 16, 300)),
}


@pytest.mark.parametrize("sign", ["positive", "both"])
@pytest.mark.parametrize("case", CASES)
def test_error_is_a_few_times_that_of_eager(case, sign):
    model, shape = CASES[case]
    fill = torch.rand if sign == "positive" else torch.randn
    random = torch.Generator().manual_seed(5)
    model = copy.deepcopy(model).eval()
    model.weight.data = fill(model.weight.shape, generator=random)
    x = fill(shape, generator=random)
    program = mlir_npu.capture(model, x, options={"min_region_macs": 0, "strict": True})
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(x.double())
        expected = model(x)

    def error(result: torch.Tensor) -> float:
        return ((result.double() - exact).square().mean().sqrt() / exact.abs().max()).item()

    assert error(program(x)) <= 3 * error(expected)
