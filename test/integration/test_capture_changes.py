"""What changes in a model after it was captured: weights take effect, the rest is an error."""

import weakref

import pytest
import torch
from parity import assert_same
from test_weights import CHANGES, network
from torch import nn

import mlir_npu
from mlir_npu import MismatchError

X = torch.randn(1, 3, 8, 8)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_takes_effect(change):
    model = network()
    with torch.no_grad():
        model(X)
        program = mlir_npu.capture(model, X)
        before = program(X)
        assert_same(before, model(X))
        change(model)
        expected = model(X)
        assert not torch.allclose(before, expected, atol=1e-3), "the change must show"
        for _ in range(2):
            torch.testing.assert_close(program(X), expected, rtol=1e-4, atol=1e-4)


WRITES = [
    lambda w: w.data.mul_(3),
    lambda w: w.data[0].zero_(),
    lambda w: w.detach().numpy().fill(0.5),
    lambda w: torch.optim.SGD([w], lr=1.0, fused=True).step(),
]


@pytest.mark.parametrize("write", WRITES)
def test_writes_behind_the_version_counter_take_effect(write):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    program = mlir_npu.capture(model, X)
    program(X)
    model[0].weight.grad = torch.ones_like(model[0].weight)
    write(model[0].weight)
    with torch.no_grad():
        assert_same(program(X), model(X))


def test_what_is_found_without_a_module_takes_effect():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain, self.listed = torch.ones(8, 1, 1), [torch.ones(8, 1, 1)]
            self.weights = nn.ParameterList([nn.Parameter(torch.ones(8, 3, 1, 1))])
            self.table = nn.ParameterDict({"bias": nn.Parameter(torch.ones(8))})

        def forward(self, x):
            y = nn.functional.conv2d(x, self.weights[0], self.table["bias"])
            return y * self.plain + self.listed[0] + cell * GLOBAL

    cell, model = torch.ones(1), Model()
    global GLOBAL
    GLOBAL = torch.ones(1)
    program = mlir_npu.capture(model, X)

    def changes():
        yield
        model.plain = torch.full((8, 1, 1), 2.0)
        yield
        model.listed[0] = torch.full((8, 1, 1), 3.0)
        yield
        model.listed = [torch.full((8, 1, 1), 4.0)]
        yield
        model.weights[0] = nn.Parameter(torch.randn(8, 3, 1, 1))
        yield
        model.table["bias"] = nn.Parameter(torch.randn(8))
        yield
        nonlocal cell
        cell = torch.full((1,), 5.0)
        yield
        globals()["GLOBAL"] = torch.full((1,), 6.0)
        yield

    with torch.no_grad():
        for _ in changes():
            assert_same(program(X), model(X))


def test_free_variables_of_a_function_are_read_anew():
    layer = nn.Conv2d(3, 8, 3)

    def model(x):
        return layer(x) + offset

    offset = torch.ones(1)
    program = mlir_npu.capture(model, X)
    with torch.no_grad():
        offset = torch.full((1,), 2.0)
        assert_same(program(X), model(X))
        layer.weight = nn.Parameter(torch.randn_like(layer.weight))
        assert_same(program(X), model(X))
        layer = nn.Conv2d(3, 8, 3)
        with pytest.raises(MismatchError, match="module layer was replaced"):
            program(X)


def nested():
    return nn.Sequential(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), nn.Dropout()).eval()


MISMATCHES = [
    (lambda m: m.train(), r"0\.1\.training is True, and was False"),
    (lambda m: m[1].train(), r"1\.training is True"),
    (lambda m: m.__setitem__(0, nn.Sequential(*m[0])), "module 0 was replaced"),
    (lambda m: m[0].__setitem__(1, nn.Identity()), r"module 0\.1 was replaced"),
    (lambda m: setattr(m[0][0], "bias", None), r"0\.0\.bias is a NoneType, and was a tensor"),
    (lambda m: m.double(), r"0\.0\.(weight|bias) is float64\["),
    (
        lambda m: m.to(memory_format=torch.channels_last),
        r"0\.0\.weight is float32\[8, 3, 3, 3\] with strides \[27, 1, 9, 3\]",
    ),
    (
        lambda m: setattr(m[0][0], "weight", nn.Parameter(torch.ones(8, 3, 1, 1))),
        r"0\.0\.weight is float32\[8, 3, 1, 1\] .* was float32\[8, 3, 3, 3\]",
    ),
]


@pytest.mark.parametrize("change, message", MISMATCHES)
def test_another_model_is_an_error_until_it_is_back(change, message):
    model = nested()
    program = mlir_npu.capture(model, X)
    program(X)
    change(model)
    for _ in range(2):
        with pytest.raises(MismatchError, match=message):
            program(X)


def test_a_program_goes_on_when_its_model_is_back():
    model = nested()
    program = mlir_npu.capture(model, X)
    expected = program(X)
    model.train()
    with pytest.raises(MismatchError, match="training"):
        program(X)
    model.eval()
    assert_same(program(X), expected)


def test_tied_weights_stay_tied():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    model, x = Model(), torch.randn(4, 8)
    program = mlir_npu.capture(model, x)
    with torch.no_grad():
        model.a.weight.mul_(2)
        assert_same(program(x), model(x))
        model.a.weight = model.b.weight = nn.Parameter(torch.randn(8, 8))
        assert_same(program(x), model(x))
        model.b.weight = nn.Parameter(torch.randn(8, 8))
        with pytest.raises(MismatchError, match="were one tensor"):
            program(x)


def test_replaced_weights_are_freed():
    layer = nn.Conv2d(3, 8, 3)
    program = mlir_npu.capture(layer, X)
    program(X)
    old = weakref.ref(layer.weight)
    layer.weight = nn.Parameter(torch.randn_like(layer.weight))
    program(X)
    assert old() is None
