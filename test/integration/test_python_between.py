"""Kinds of Python between the graphs of a captured program: it is repeated, or people are told with
the line. What is compared, and values that only Python knows, have tests of their own."""

import contextlib
import logging

import pytest
import torch
from program_steps import check_program
from torch import nn

import mlir_npu
from mlir_npu.errors import CaptureError

torch.manual_seed(0)
CONV = nn.Conv2d(2, 3, 3)
SEEN: list = []
STEPS = 0


class Settings:
    scale = 1


SETTINGS = Settings()
logger = logging.getLogger(__name__)


def image() -> torch.Tensor:
    return torch.randn(1, 2, 8, 8)


def prints(x):
    y = CONV(x)
    print(y.mean().item())
    return y * 2


def logs(x):
    y = CONV(x)
    logger.warning("mean %s", y.mean().item())
    return y * 2


def appends(x):
    y = CONV(x)
    SEEN.append(len(SEEN))
    torch._dynamo.graph_break()
    return y * len(SEEN)


def counts(x):
    global STEPS
    STEPS += 1
    return CONV(x) * STEPS


def counts_in_a_closure():
    calls = 0

    def model(x):
        nonlocal calls
        calls += 1
        y = CONV(x)
        torch._dynamo.graph_break()
        return y * calls

    return model


def counts_in_an_object(x):
    SETTINGS.scale += 1
    y = CONV(x)
    torch._dynamo.graph_break()
    return y * SETTINGS.scale


class Keeps(nn.Module):
    """What a module keeps of a call, with the lines of it in a module inside of another."""

    def __init__(self, keep):
        super().__init__()
        self.inner = Keeper(keep)

    def forward(self, x):
        return self.inner(x) * 2


class Keeper(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.conv, self.keep = nn.Conv2d(2, 3, 3), keep
        self.calls, self.seen, self.last = 0, [], None

    def forward(self, x):
        y = self.conv(x)
        if self.keep == "number":
            self.calls += 1
        elif self.keep == "element":
            self.seen.append(x.shape[0])
        elif self.keep == "tensor":
            self.last = y
        torch._dynamo.graph_break()
        return y


@pytest.mark.parametrize(
    "model, line",
    [
        (prints, "print(y.mean().item())"),
        (logs, 'logger.warning("mean %s", y.mean().item())'),
        (appends, "SEEN.append(len(SEEN))"),
        (counts, "STEPS += 1"),
        (counts_in_a_closure(), "calls += 1"),
        (counts_in_an_object, "SETTINGS.scale += 1"),
        (Keeps("number"), "self.calls += 1"),
        (Keeps("element"), "self.seen.append(x.shape[0])"),
        (Keeps("tensor"), "self.last = y"),
    ],
)
def test_what_is_left_out_is_listed_with_its_line(model, line):
    program = mlir_npu.capture(model, image(), train=True)
    assert line in [one.line for one in program.python_between]


def compares_all(x):
    y = CONV(x)
    return y * 2 if torch.equal(y, y) else y


@torch.compiler.disable
def reads_all(y):
    return y * len(y.tolist())


@torch.compiler.disable
def adds_a_hook(y):
    y.register_hook(lambda gradient: gradient * 2)
    return y * 2


@torch.compiler.disable
def computes_gradients(y):
    y.sum().backward(retain_graph=True)
    return y * 2


@pytest.mark.parametrize(
    "model, reason",
    [
        (compares_all, "torch.equal takes values to Python"),
        (lambda x: reads_all(CONV(x)), "torch.Tensor.tolist takes values to Python"),
        (lambda x: adds_a_hook(CONV(x)), "torch.Tensor.register_hook adds a hook to a gradient"),
        (lambda x: computes_gradients(CONV(x)), "torch.Tensor.backward computes gradients"),
    ],
)
def test_what_a_call_does_that_is_left_out(model, reason):
    program = mlir_npu.capture(model, image(), train=True)
    assert reason in [one.reason for one in program.python_between]


@torch.compiler.disable
def multiplies_halves(y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (y @ torch.eye(6)).float() + COMPILED(y)


COMPILED = nn.Sequential(nn.Linear(6, 6), nn.ReLU())


def test_uncompiled_functions_keep_their_autocast():
    x = image()
    program = mlir_npu.capture(lambda x: multiplies_halves(CONV(x)) * 2, x, train=True)
    result = CONV(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        halves = (result @ torch.eye(6)).float() + COMPILED(result)
    torch.testing.assert_close(program(x), halves * 2, rtol=1e-2, atol=1e-2)
    rough = ((result @ torch.eye(6)) + COMPILED(result)) * 2
    assert (program(x) - halves * 2).abs().mean() < (program(x) - rough).abs().mean()


@contextlib.contextmanager
def without_gradients():
    with torch.no_grad():
        yield


def manages_a_context(conv, x):
    y = conv(x)
    with without_gradients():
        scale = y.abs().mean() + 1
    torch._dynamo.graph_break()
    return y / scale


def tries(conv, x):
    y = conv(x)
    try:
        torch._dynamo.graph_break()
        raise ValueError
    except ValueError:
        y = y * 2
    return y


def keeps_a_dictionary(conv, x):
    found = {"first": conv(x)}
    torch._dynamo.graph_break()
    found["second"] = found["first"].tanh()
    torch._dynamo.graph_break()
    return {name: value * 2 for name, value in reversed(found.items())}


@pytest.mark.parametrize("function", [manages_a_context, tries, keeps_a_dictionary])
def test_what_moves_tensors_about_is_repeated(function):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 3)

        def forward(self, x):
            return function(self.conv, x)

    check_program(Model(), image().requires_grad_())


def test_arrays_of_numpy_are_refused():
    @torch.compiler.disable
    def doubled(y):
        return torch.from_numpy(y.detach().numpy() * 2)

    with pytest.raises(CaptureError, match="unknown origin"):
        mlir_npu.capture(lambda x: doubled(CONV(x)).relu(), image(), train=True)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, x):
        y = x + self.conv(x).tanh()
        torch._dynamo.graph_break()
        return y


def test_twenty_graph_breaks(tmp_path):
    model, x = nn.Sequential(*(Step() for _ in range(20))), image()
    program = check_program(model, x.clone().requires_grad_())
    assert len(program.forward_units) == len(program.backward_units) == 20
    assert not program.python_between
    program.save(tmp_path)
    loaded = mlir_npu.load(tmp_path)
    model.zero_grad()
    model(x).square().mean().backward()
    loaded(x).square().mean().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            loaded.weights[name].grad, parameter.grad, rtol=1e-3, atol=1e-5, msg=name
        )
