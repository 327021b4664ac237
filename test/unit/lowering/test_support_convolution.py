"""Which convolutions the NPU takes, by attributes and not by name."""

import pytest
import torch
from aten_graphs import aten, call_of, trace

from mlir_npu.lowering.support import explain_support


def explain(
    x,
    weight,
    *,
    bias=False,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    transposed=False,
    dtype=torch.float32,
):
    spatial = len(x) - 2
    tensors = [torch.rand(x).to(dtype), torch.rand(weight).to(dtype)]
    if bias:
        tensors.append(torch.rand(weight[0]).to(dtype))

    def convolve(x, weight, bias=None):
        return aten.convolution(
            x, weight, bias, [stride] * spatial, [padding] * spatial, [dilation] * spatial,
            transposed, [0] * spatial, groups,
        )  # fmt: skip

    def without_bias(x, weight):
        return convolve(x, weight)

    graph_module = trace(convolve if bias else without_bias, *tensors)
    return explain_support(call_of(graph_module, "aten.convolution.default"))


@pytest.mark.parametrize(
    "case",
    [
        dict(x=(1, 3, 8, 8), weight=(4, 3, 3, 3)),
        dict(x=(1, 3, 8, 8), weight=(4, 3, 3, 3), bias=True, padding=1),
        dict(x=(2, 3, 9, 7), weight=(4, 3, 3, 2), stride=2, dilation=2, padding=3),
        dict(x=(1, 4, 8, 8), weight=(6, 2, 3, 3), groups=2),
        dict(x=(1, 4, 8, 8), weight=(4, 1, 3, 3), groups=4),
        dict(x=(1, 2, 5, 5), weight=(32, 1, 3, 3), groups=2),
        dict(x=(1, 4, 9), weight=(6, 4, 3), bias=True, stride=2),
        dict(x=(1, 4, 9), weight=(4, 1, 3), groups=4),
        dict(x=(1, 3, 4, 8, 8), weight=(4, 3, 3, 3, 3)),
        dict(x=(1, 4, 4, 8, 8), weight=(4, 2, 3, 3, 3), groups=2),
        dict(x=(1, 3, 8, 8), weight=(3, 4, 2, 2), transposed=True, stride=2),
        dict(x=(1, 3, 4, 8, 8), weight=(3, 4, 3, 3, 3), transposed=True),
        dict(x=(1, 4, 8, 8), weight=(4, 1, 2, 2), transposed=True, groups=4),
    ],
    ids=str,
)
def test_convolutions_of_one_to_three_dimensions_are_supported(case):
    assert explain(**case) is None


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (dict(x=(1, 3, 8, 8), weight=(4, 3, 3, 3), dtype=torch.float64), "float64"),
        (dict(x=(1, 3, 8, 8), weight=(4, 3, 3, 3), dtype=torch.complex64), "complex64"),
        (dict(x=(0, 3, 8, 8), weight=(4, 3, 3, 3)), "0x3x8x8"),
    ],
    ids=str,
)
def test_other_convolutions_are_rejected_with_the_reason(case, words):
    reason = explain(**case)
    assert reason is not None and words in reason
