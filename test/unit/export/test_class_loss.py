"""The loss of a classifier, respelled, against eager."""

import pytest
import torch

from mlir_npu.export.class_loss import nll_loss_backward, nll_loss_forward

aten = torch.ops.aten


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 0.5, 2.0, 3.0])])
@pytest.mark.parametrize("ignored", [-100, 2])
@pytest.mark.parametrize("target", [[0, 3, 2, 1, 2], [2, 2, 2, 2, 0]])
def test_like_eager(reduction, weight, ignored, target) -> None:
    x, target = torch.randn(5, 4), torch.tensor(target)
    how = (target, weight, reduction, ignored)
    loss, total = aten.nll_loss_forward(x, *how)
    ours, our_total = nll_loss_forward(x, *how)
    torch.testing.assert_close(ours, loss)
    if reduction:
        torch.testing.assert_close(our_total, total)
    gradient = torch.randn_like(loss)
    expected = aten.nll_loss_backward(gradient, x, *how, total)
    torch.testing.assert_close(nll_loss_backward(gradient, x, *how, our_total), expected)


def test_one_row_without_a_batch() -> None:
    x, target = torch.randn(4), torch.tensor(2)
    loss, total = aten.nll_loss_forward(x, target, None, 1, -100)
    ours = nll_loss_forward(x, target, None, 1, -100)
    torch.testing.assert_close(ours, (loss, total))


def test_targets_that_are_no_class_count_for_nothing() -> None:
    x = torch.randn(2, 3)
    loss, total = nll_loss_forward(x, torch.tensor([1, 7]), None, 2, -100)
    torch.testing.assert_close(loss, -x[0, 1])
    assert total == 1
