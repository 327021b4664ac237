"""Sums of many terms are about as close to the exact sum as eager's."""

import pytest
import torch

IMAGES = torch.rand(2, 16, 64, 64)
CASES = {
    "channels": (lambda x: x.sum((0, 2, 3)), IMAGES),
    "channels_last": (
        lambda x: x.sum((0, 2, 3)),
        IMAGES.to(memory_format=torch.channels_last),
    ),
    "rows": (lambda x: x.sum(0), torch.rand(40000, 32)),
    "middle": (lambda x: x.mean(1), torch.rand(4, 5000, 48)),
    "products": (lambda x: (x * x + 1).sum((0, 1)), torch.rand(60, 501, 24)),
}


@pytest.mark.parametrize("case", CASES)
def test_error_is_a_few_times_that_of_eager(case):
    function, x = CASES[case]
    exact = function(x.double())
    compiled = torch.compile(
        function, backend="mlir_npu", options={"min_region_macs": 0, "strict": True}
    )

    def error(result: torch.Tensor) -> float:
        return ((result.double() - exact).abs().max() / exact.abs().max()).item()

    assert error(compiled(x)) <= 8 * error(function(x))
