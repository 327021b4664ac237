"""Distances from float64: of empty tensors, of gradients that are all rounding, of wrong ones."""

import copy

import pytest
import torch
from torch import nn

from mlir_npu.scripts.networks.survey.measure import deviations, failures, infer, train


class Shifted(nn.Module):
    """The shift cancels, so its gradient is 0 but for rounding; one parameter is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(8))
        self.shift = nn.Parameter(torch.randn(1))
        self.empty = nn.Parameter(torch.zeros(0))

    def forward(self, x):
        return (torch.cat([x * self.scale, self.empty.expand(64, 0)], 1) + self.shift).softmax(-1)


def measured(step, change=None, extra=None):
    model = Shifted()
    ours = copy.deepcopy(model)
    if extra is not None:
        ours.unused = nn.Parameter(torch.ones(2))
        ours.register_forward_hook(lambda module, _, result: result + (module.unused * extra).sum())
    if change is not None:
        ours.register_full_backward_pre_hook(change)
    return deviations(model, ours, (torch.randn(64, 8),), step)


@pytest.mark.parametrize("step", [infer, train])
def test_a_copy_is_as_close_as_the_model(step):
    found = measured(step)
    assert failures(found) == []
    assert all(deviation.eager < 1e-2 for deviation in found)


def test_gradients_of_another_size_fail():
    def larger(module, gradients):
        return tuple(gradient * 1.001 for gradient in gradients)

    failed = {text.split(":")[0] for text in failures(measured(train, larger))}
    assert failed == {"gradient of scale", "gradient of input 0"}


def test_parameters_that_eager_gives_no_gradient_have_none_or_zeros():
    assert failures(measured(train, extra=0.0)) == []
    with pytest.raises(ValueError, match="additional: .'gradient of unused'"):
        measured(train, extra=1.0)
