"""Multiply-accumulates by formulas one can do on paper."""

import pytest
import torch
from aten_graphs import aten, one_call

from mlir_npu.lowering.macs import count_conv_macs, count_elements, count_macs


def convolution(x, weight, *, transposed=False, groups=1, stride=1):
    zeros = [0] * (len(x) - 2)
    return one_call(
        aten.convolution.default, torch.rand(x), torch.rand(weight), None,
        [stride] * len(zeros), zeros, [1] * len(zeros), transposed, zeros, groups,
    )  # fmt: skip


def backward(mask):
    return one_call(
        aten.convolution_backward.default,
        torch.rand(2, 8, 6, 6), torch.rand(2, 3, 8, 8), torch.rand(8, 3, 3, 3), [8],
        [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask,
    )  # fmt: skip


def call(graph_module):
    return next(node for node in graph_module.graph.nodes if node.op == "call_function")


@pytest.mark.parametrize(
    ("graph_module", "macs"),
    [
        (convolution((2, 3, 8, 8), (8, 3, 3, 3)), 2 * 8 * 6 * 6 * 3 * 9),
        (convolution((1, 4, 8, 8), (6, 2, 3, 3), groups=2), 6 * 6 * 6 * 2 * 9),
        (convolution((1, 4, 8, 8), (4, 1, 3, 3), groups=4), 4 * 6 * 6 * 9),
        (convolution((1, 4, 9), (6, 4, 3), stride=2), 6 * 4 * 4 * 3),
        (convolution((1, 4, 5, 5), (4, 6, 2, 2), transposed=True, stride=2), 4 * 5 * 5 * 6 * 4),
        (backward([True, True, False]), 2 * (2 * 8 * 6 * 6 * 3 * 9)),
        (backward([False, True, True]), 2 * 8 * 6 * 6 * 3 * 9),
        (one_call(aten.mm.default, torch.rand(4, 5), torch.rand(5, 6)), 4 * 5 * 6),
        (one_call(aten.bmm.default, torch.rand(3, 4, 5), torch.rand(3, 5, 6)), 3 * 4 * 5 * 6),
        (
            one_call(aten.addmm.default, torch.rand(6), torch.rand(4, 5), torch.rand(5, 6)),
            4 * 5 * 6,
        ),
        (one_call(aten.linear.default, torch.rand(2, 3, 5), torch.rand(6, 5)), 2 * 3 * 5 * 6),
        (one_call(aten.relu.default, torch.rand(4, 5)), 0),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_macs(graph_module, macs):
    assert count_macs(call(graph_module)) == macs


def test_only_convolutions_count_as_convolutions():
    nodes = [
        call(convolution((1, 1, 3, 3), (1, 1, 3, 3))),
        call(one_call(aten.mm.default, torch.ones(2, 2), torch.ones(2, 2))),
    ]
    assert count_conv_macs(nodes) == 9


def test_elements_are_those_of_the_first_result():
    pool = one_call(aten.max_pool2d_with_indices.default, torch.rand(1, 2, 8, 8), [2, 2])
    assert count_elements(call(pool)) == 2 * 4 * 4
