"""Errors of capturing and calling, and what a program shows of itself."""

import ast

import pytest
import torch
from torch import nn

import mlir_npu
from mlir_npu import CaptureError, MismatchError, OptionsError, StrictError

CONV = nn.Conv2d(3, 8, 3).eval()
X = torch.randn(1, 3, 8, 8)


def add(x, y, *, scale=1):
    return (x + y["a"]) * scale


@pytest.fixture(scope="module")
def program():
    return mlir_npu.capture(add, X, {"a": X}, scale=2)


CALLS = [
    (
        lambda p: p(X),
        "takes 2 positional inputs and the keywords scale.* given 1 positional input$",
    ),
    (lambda p: p(X, {"a": X}), "the keywords scale"),
    (lambda p: p(X, {"a": X}, scale=2, more=3), "the keywords scale, more"),
    (lambda p: p(X, {"b": X}, scale=2), "nested"),
    (lambda p: p(X, {"a": X}, scale=3), "input scale is 3, and its value 2 is part"),
    (lambda p: p(X, {"a": X}, scale=2.0), "input scale is 2.0"),
    (lambda p: p(X, {"a": 1.0}, scale=2), r"input y\['a'\] is a float, .* a torch.Tensor"),
    (
        lambda p: p(torch.ones(2), {"a": X}, scale=2),
        r"input x is float32\[2\], .* float32\[1, 3, 8, 8\]",
    ),
    (lambda p: p(X.double(), {"a": X}, scale=2), r"input x is float64\[1, 3, 8, 8\]"),
    (lambda p: p(X.to("meta"), {"a": X}, scale=2), "input x is on meta"),
    (lambda p: p(X.to_sparse(), {"a": X}, scale=2), "torch.sparse_coo"),
    (lambda p: p(X, {"a": X.mT}, scale=2), r"input y\['a'\] has strides \[192, 64, 1, 8\]"),
    (lambda p: p(X.clone().requires_grad_(), {"a": X}, scale=2), "input x requires a gradient"),
]


@pytest.mark.parametrize("call, message", CALLS)
def test_what_does_not_fit_is_named(program, call, message):
    with pytest.raises(MismatchError, match=message):
        call(program)


def test_inputs_that_require_gradients_are_fine_where_there_are_none(program):
    with torch.no_grad():
        program(X.clone().requires_grad_(), {"a": nn.Parameter(X)}, scale=2)


def test_autocast_is_part_of_a_program():
    program = mlir_npu.capture(CONV, X)
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.raises(MismatchError, match="autocast is on, with torch.bfloat16, and was off"):
            program(X)
        inside = mlir_npu.capture(CONV, X)
        assert inside(X).dtype is CONV(X).dtype
    with pytest.raises(MismatchError, match="autocast is off"):
        inside(X)


def test_memory_that_is_written_is_not_shared():
    def model(x, y):
        x.add_(1)
        return y * 2

    program = mlir_npu.capture(model, X.clone(), X.clone())
    shared = X.clone()
    with pytest.raises(MismatchError, match=r"inputs share memory that the model writes to \(x"):
        program(shared, shared)
    program(shared, X)


def test_memory_of_the_model_that_is_written_is_not_given():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1, 3, 8, 8))

        def forward(self, x, y):
            self.seen.add_(1)
            return x + y

    model = Counter()
    program = mlir_npu.capture(model, X, X.clone())
    with pytest.raises(MismatchError, match=r"memory that the model writes to \(y\)"):
        program(X, model.seen)


def branch(x):
    y = CONV(x)
    if y.sum() > 0:
        return y + 1
    return y


def item(x):
    return CONV(x) if x.sum().item() > 0 else x


def prints(x):
    print(x)
    return CONV(x)


@pytest.mark.parametrize(
    "model, line",
    [
        (branch, "if y.sum() > 0:"),
        (item, "return CONV(x) if x.sum().item() > 0 else x"),
        (prints, "print(x)"),
    ],
)
def test_what_is_not_one_graph_is_a_program_of_several(model, line):
    program = mlir_npu.capture(model, X)
    torch.testing.assert_close(program(X), model(X).detach(), rtol=1e-4, atol=1e-5)
    assert any(one.line == line for one in program.explanation.breaks)
    told = [one for one in program.python_between if one.line == line]
    assert bool(told) is (model is prints), "what is checked is not left out"


def test_results_that_share_memory_still_do():
    def model(x):
        y = CONV(x)
        return y, y[0], y.flatten(1)

    program = mlir_npu.capture(model, X)
    y, first, flat = program(X)
    y.fill_(7)
    assert (first == 7).all() and (flat == 7).all()


CALLED = []


def test_side_effects_are_an_error():
    def model(x):
        CALLED.append(1)
        return CONV(x)

    with pytest.raises(CaptureError, match="CALLED"):
        mlir_npu.capture(model, X)
    assert not CALLED

    class Stateful(nn.Module):
        def forward(self, x):
            self.last = CONV(x)
            return self.last

    with pytest.raises(CaptureError, match="changes Python objects"):
        mlir_npu.capture(Stateful(), X)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(()))

        def forward(self, x):
            self.state = self.state + x.sum()
            return CONV(x) + self.state

    model = Recurrent()
    with pytest.raises(CaptureError, match="assigns a new tensor to state"):
        mlir_npu.capture(model, X)
    assert model.state.item() == 0


def test_results_that_cannot_be_built_again_are_an_error():
    class Box:
        def __init__(self, value):
            self.value = value

    with pytest.raises(CaptureError, match=r"its result\[1\] is a Box"):
        mlir_npu.capture(lambda x: (x, Box(CONV(x))), X)


@pytest.mark.parametrize("value", [object(), X.to("meta"), X.to_sparse()])
def test_inputs_of_other_kinds_are_an_error(value):
    with pytest.raises(CaptureError, match="input y is a"):
        mlir_npu.capture(lambda x, y: x, X, value)


def test_gradients_inside_are_an_error():
    def model(x):
        with torch.enable_grad():
            return CONV(x)

    with pytest.raises(CaptureError):
        mlir_npu.capture(model, X)


def test_options_are_checked_and_used():
    with pytest.raises(OptionsError, match="did you mean 'target'"):
        mlir_npu.capture(CONV, X, options={"targte": "host"})
    large = torch.randn(1, 3, 64, 64)
    with pytest.raises(StrictError):
        mlir_npu.capture(
            lambda x: torch.special.bessel_j0(CONV(x)), large, options={"strict": True}
        )


def test_errors_of_the_model_are_shown():
    with pytest.raises(CaptureError, match="shape|size|channels") as error:
        mlir_npu.capture(lambda x: CONV(x[:, :2]), X)
    assert error.value.location


def test_a_program_shows_what_it_is():
    model = nn.Sequential(CONV, nn.ReLU())
    program = mlir_npu.capture(model, X, options={"host_ops": ["relu"]})
    assert repr(program) == "<program of Sequential(input: float32[1, 3, 8, 8])>"
    ast.parse(program.source)
    assert "parameter 0.weight: float32[8, 3, 3, 3]" in program.source
    assert program.explanation.regions == 1 and program.explanation.host_nodes == 1
    assert "npu_0" in str(program.explanation)
    nothing = mlir_npu.capture(lambda x: 3, X)
    assert nothing.forward_units == () and "return results, saved" in nothing.source
