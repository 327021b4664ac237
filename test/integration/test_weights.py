"""Weights changed after compiling take effect at the next call, whatever changed them: peers M8."""

import copy

import pytest
import torch
from parity import compile_model
from torch import nn


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        nn.Flatten(),
        nn.LazyLinear(5),
    ).eval()


def in_place(model):
    model[0].weight.mul_(2.0)


def running_statistics(model):
    model[1].running_mean.add_(0.5)
    model[1].running_var.mul_(3.0)


def load_state_dict(model):
    model.load_state_dict(
        {k: v + 0.1 if v.is_floating_point() else v for k, v in model.state_dict().items()}
    )


def load_state_dict_by_assignment(model):
    state = {k: v + 0.1 if v.is_floating_point() else v for k, v in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def optimizer_step(model):
    with torch.enable_grad():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(1, 3, 8, 8)).square().sum().backward()
        optimizer.step()


def replaced_parameter(model):
    model[3].weight = nn.Parameter(torch.randn_like(model[3].weight))


def replaced_data(model):
    model[3].weight.data = torch.randn_like(model[3].weight)


CHANGES = [
    in_place,
    running_statistics,
    load_state_dict,
    load_state_dict_by_assignment,
    optimizer_step,
    replaced_parameter,
    replaced_data,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_takes_effect(change):
    model, x = network(), torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        model(x)
        compiled = compile_model(model)
        before = compiled(x)
        torch.testing.assert_close(before, model(x), rtol=1e-4, atol=1e-4)
        change(model)
        expected = model(x)
        assert not torch.allclose(before, expected, atol=1e-3), "the change must show"
        for _ in range(2):
            torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)


def test_two_models_of_one_shape_keep_their_weights():
    """peers K3."""
    first, second = network(), network()
    x = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        expected = first(x), second(x)
        one, two = compile_model(first), compile_model(second)
        for _ in range(2):
            torch.testing.assert_close(one(x), expected[0], rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(two(x), expected[1], rtol=1e-4, atol=1e-4)


def test_a_copy_of_a_compiled_model_has_weights_of_its_own():
    """peers M10."""
    model, x = network(), torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        model(x)
        compiled = compile_model(model)
        compiled(x)
        twin = copy.deepcopy(compiled)
        model[0].weight.zero_()
        assert not torch.allclose(twin(x), compiled(x))
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
