"""Calls after one that was found to fit: each kind of input is seen again, and so are buffers."""

import pytest
import torch
from torch import nn

import mlir_npu
from mlir_npu import MismatchError

X = torch.randn(4, 6)
ON_HOST = {"fallback": "llvm", "min_region_macs": 1 << 60}


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("y", torch.randn(4, 6))

    def forward(self, x):
        return x + self.y


@pytest.fixture
def fitting():
    """A model and its program, which has been called."""
    model = Sum()
    program = mlir_npu.capture(model, X, options=ON_HOST)
    for _ in range(2):
        assert torch.equal(program(X), model(X))
    return model, program


INPUTS = [
    lambda: torch._neg_view(X.clone()),
    lambda: nn.Parameter(X.clone(), requires_grad=False),
    lambda: X.new_empty(9, 6)[2:6].copy_(X),
    lambda: X.clone().as_strided((4, 6), (6, 1)),
]


@pytest.mark.parametrize("make", INPUTS)
def test_inputs_of_another_kind_give_what_the_model_gives(fitting, make):
    model, program = fitting
    for x in (make(), X, make()):
        assert torch.equal(program(x), model(x))


def test_a_first_input_may_be_of_another_kind():
    model = Sum()
    program = mlir_npu.capture(model, X, options=ON_HOST)
    for x in (torch._neg_view(X.clone()), X, torch._neg_view(X.clone())):
        assert torch.equal(program(x), model(x))


REFUSED = [
    (lambda: X.double(), "float64"),
    (lambda: X[:3], r"float32\[3, 6\]"),
    (lambda: torch.randn(6, 4).t(), "strides"),
    (lambda: X.clone().requires_grad_(), "requires a gradient"),
    (lambda: None, "a NoneType"),
]


@pytest.mark.parametrize("make, message", REFUSED)
def test_inputs_that_do_not_fit_are_refused_after_one_that_did(fitting, make, message):
    model, program = fitting
    with pytest.raises(MismatchError, match=message):
        program(make())
    assert torch.equal(program(X), model(X))


def test_gradients_are_refused_after_a_call_without_them(fitting):
    _, program = fitting
    x = X.clone().requires_grad_()
    with torch.no_grad():
        program(x)
    with pytest.raises(MismatchError, match="requires a gradient"):
        program(x)


def test_modes_are_told_from_those_of_the_fitting_call(fitting):
    model, program = fitting
    with torch.autocast("cpu"), pytest.raises(MismatchError, match="autocast is on"):
        program(X)
    with torch.inference_mode():
        assert torch.equal(program(X), model(X))
        assert torch.equal(program(X + 1), model(X + 1))
    assert torch.equal(program(X), model(X))


def test_results_have_no_gradient_and_the_mode_stays(fitting):
    _, program = fitting
    assert not program(X).requires_grad and torch.is_grad_enabled()
    with torch.no_grad():
        program(X)
        assert not torch.is_grad_enabled()


def transpose(model):
    model.y.t_()


def replace_data(model):
    model.y.data = torch.randn(6, 4).t()


def negate(model):
    model.y = torch._neg_view(model.y)


def write(model):
    model.y[1] = 7.0


def write_behind_the_version(model):
    model.y.numpy().fill(0.5)


def move(model):
    model.y.data = torch.randn(4, 6)


@pytest.mark.parametrize("change", [write, write_behind_the_version, move, negate])
def test_buffers_are_read_at_every_call(fitting, change):
    model, program = fitting
    change(model)
    for _ in range(2):
        assert torch.equal(program(X), model(X))


@pytest.mark.parametrize("change", [transpose, replace_data])
def test_buffers_of_another_layout_are_refused(fitting, change):
    model, program = fitting
    change(model)
    for _ in range(2):
        with pytest.raises(MismatchError, match="was float32"):
            program(X)


def test_a_weight_is_seen_both_packed_and_as_it_is():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1, bias=False)

        def forward(self, x):
            return self.conv(x), self.conv.weight

    model, x = Model(), torch.randn(1, 3, 4, 4)
    program = mlir_npu.capture(model, x)
    with torch.no_grad():
        program(x)
        model.conv.weight.mul_(3)
        result, weight = program(x)
        assert weight is model.conv.weight
        torch.testing.assert_close(result, model(x)[0])
