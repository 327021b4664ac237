"""Max pooling with indices, respelled, against eager: NaN, infinities, ties, padding."""

import itertools

import pytest
import torch

from mlir_npu.export.pool_indices import max_pool2d_with_indices, max_pool2d_with_indices_backward

aten = torch.ops.aten
CASES = list(itertools.product(([2, 2], [3, 2]), ([], [1, 2], [3, 3]), (0, 1), (False, True)))


@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (3, 8, 8)])
@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil_mode"), CASES)
def test_like_eager(shape, kernel, stride, padding, ceil_mode) -> None:
    x = torch.randn(shape).round()  # with ties
    x.view(-1)[3], x.view(-1)[20], x[..., -1, -2:] = torch.nan, torch.inf, -torch.inf
    how = (kernel, stride, [padding] * 2, [1, 1], ceil_mode)
    values, indices = aten.max_pool2d_with_indices(x, *how)
    ours, places = max_pool2d_with_indices(x, *how)
    assert torch.equal(places, indices)
    torch.testing.assert_close(ours, values, rtol=0, atol=0, equal_nan=True)
    gradient = torch.randn_like(values)
    expected = aten.max_pool2d_with_indices_backward(gradient, x, *how, indices)
    actual = max_pool2d_with_indices_backward(gradient, x, *how, indices)
    torch.testing.assert_close(actual, expected)


def test_dilation_is_left_to_others() -> None:
    x = torch.randn(1, 1, 8, 8)
    assert max_pool2d_with_indices(x, [2, 2], [], [0, 0], [2, 2]) is NotImplemented
