"""Kinds of Python between the graphs of a captured program: it is repeated, or compared, or people
are told with the line. No number of Python becomes part of a program unsaid."""

import contextlib
import logging
import math
import os
import random
import time

import numpy as np
import pytest
import torch
from program_steps import check_program
from torch import nn

import mlir_npu
from mlir_npu.errors import CaptureError, MismatchError

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


def draws(x):
    y = CONV(x)
    return y * (1 + random.random())


def draws_integers(x):
    y = CONV(x)
    return y * random.randint(100, 200)


@torch.compiler.disable
def uncompiled_number():
    return random.randint(100, 200)


def takes_integers_of_others(x):
    return CONV(x) * uncompiled_number()


def looks_at_the_clock(x):
    y = CONV(x)
    now = time.time() % 7 + 1
    return y * now


def draws_with_numpy(x):
    y = CONV(x)
    return y * float(np.random.default_rng().random())


def asks_the_file_system(x):
    y = CONV(x)
    return y * os.path.getmtime(__file__)


def sequence():
    yield from range(100, 200)


NUMBERS = sequence()


def asks_a_generator(x):
    y = CONV(x)
    torch._dynamo.graph_break()
    return y * next(NUMBERS)


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


@pytest.mark.parametrize(
    "model, line",
    [
        (draws, "return y * (1 + random.random())"),
        (draws_integers, "return y * random.randint(100, 200)"),
        (takes_integers_of_others, "return CONV(x) * uncompiled_number()"),
        (looks_at_the_clock, "now = time.time() % 7 + 1"),
        (draws_with_numpy, "return y * float(np.random.default_rng().random())"),
        (asks_the_file_system, "return y * os.path.getmtime(__file__)"),
        (asks_a_generator, "return y * next(NUMBERS)"),
    ],
)
def test_numbers_of_python_that_stay_are_listed_with_their_line(model, line):
    program = mlir_npu.capture(model, image(), train=True)
    told = [one for one in program.python_between if "which Python computed" in one.reason]
    assert [one.line for one in told] == [line]
    assert all(one.line for one in program.python_between if one.location)


THREE = 3  # channels of the convolution, and written in its code: equal numbers tell nothing


@torch.compiler.disable
def three():
    return THREE


@torch.compiler.disable
def several():
    return THREE, [True, {"first": THREE}]


def crosses_a_break(x):
    y, count = CONV(x), 3
    n = three()
    torch._dynamo.graph_break()
    return y * n * count


def decides(x):
    y = CONV(x)
    if three() == 3:
        y = y * 2
    return y


def unpacks(x):
    n, (wanted, found) = several()
    y = CONV(x)
    torch._dynamo.graph_break()
    return y * n * found["first"] if wanted else y


def shapes(x):
    y = CONV(x)
    return y.view(1, three(), -1)


def draws_what_is_a_size(x):
    return CONV(x) * random.randint(3, 3)


class Scaled(nn.Module):
    def forward(self, x, n):
        torch._dynamo.graph_break()
        return CONV(x) * n


SCALED = Scaled()


def passes_on(x):
    n = three()
    return SCALED(x, n)


def runs_uncompiled(x):
    for _ in range(2):
        n = three()
        y = SCALED(x, n) + SCALED(x, x.shape[1]) * 3
        torch._dynamo.graph_break()
    return y


@torch.compiler.disable
def scaled_by(y, n):
    return y * n


def calls_uncompiled(x):
    n = three()
    return scaled_by(CONV(x), n)


@pytest.mark.parametrize(
    "model, line",
    [
        (crosses_a_break, "n = three()"),
        (decides, "if three() == 3:"),
        (unpacks, "n, (wanted, found) = several()"),
        (shapes, "return y.view(1, three(), -1)"),
        (draws_what_is_a_size, "return CONV(x) * random.randint(3, 3)"),
        (passes_on, "n = three()"),
        (runs_uncompiled, "n = three()"),
        (calls_uncompiled, "return y * n"),
    ],
)
def test_values_of_python_are_listed_whatever_they_are_equal_to(model, line):
    program = mlir_npu.capture(model, image(), train=True)
    told = [one for one in program.python_between if "which Python computed" in one.reason]
    assert {one.line for one in told} == {line}


class Known(nn.Module):
    """Numbers of sizes, of the model, of compiled functions and of the text."""

    def __init__(self):
        super().__init__()
        self.scale, self.conv = 5, nn.Conv2d(2, 3, 3)

    def doubled(self, n):
        return 2 * n

    def forward(self, x):
        y = self.conv(x)
        batch, channels = y.shape[:2]
        n, m = self.doubled(self.scale), len(x.shape) + int(math.sqrt(49))
        torch._dynamo.graph_break()
        y = y.view(batch, channels, -1) * n * m * 1.5
        torch._dynamo.graph_break()
        return scaled_by(y, 7) * n


def test_numbers_that_a_program_knows_are_not_listed():
    program = mlir_npu.capture(Known(), image(), train=True)
    assert not [one for one in program.python_between if "which Python computed" in one.reason]


class OwnModules(nn.Module):
    """PyTorch's modules in a function that runs uncompiled, and as callees of broken calls."""

    def __init__(self):
        super().__init__()
        pool, dropout = nn.MaxPool2d(2), nn.Dropout(0.5)
        self.layers = nn.ModuleList([nn.Conv2d(2, 2, 3, padding=1, groups=2), pool, dropout])
        self.head = nn.Conv2d(2, 3, 3)

    def forward(self, x):
        with torch.no_grad():
            for layer in self.layers:
                x = layer(x)
                torch._dynamo.graph_break()
        return self.head(scaled_by(x, 2))


def test_numbers_of_pytorchs_own_modules_and_modes_are_not_listed():
    program = mlir_npu.capture(OwnModules(), image(), train=True)
    told = [one.reason for one in program.python_between]
    assert all("uncompiled" in reason or "disable" in reason for reason in told), told


def resizes(x):
    y = CONV(x)
    for _ in range(2):
        y = nn.Dropout(random.random())(y)
        y = nn.MaxUnpool2d(1)(y, torch.zeros_like(y, dtype=torch.int64), [three() * 2, three() * 2])
        torch._dynamo.graph_break()
    return y


def test_numbers_that_are_given_to_pytorchs_own_modules_are_listed():
    program = mlir_npu.capture(resizes, image(), train=True)
    told = [one.line for one in program.python_between if "number 6" in one.reason]
    assert len(told) == 1 and "MaxUnpool2d" in told[0]


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


@torch.compiler.disable
def reads(y):
    mean = y.square().mean().item()
    return mean if mean > 100 else 2 * mean


def test_a_number_is_compared_to_rounding():
    for _ in range(5):  # sums of the program and of eager are made in another order
        x = image()
        program = mlir_npu.capture(lambda x: CONV(x) * reads(CONV(x)), x, train=True)
        program(x)
    with pytest.raises(MismatchError):
        program(x * 1.001)


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


def loops(x):
    y = CONV(x)
    while y.abs().max() > 0.5:
        y = y / 2
    return y


def rounds(x):
    y = CONV(x)
    return y * (2 + round(x.abs().max().item())) * (1 + round(x.abs().max().item(), 1))


def computes_with_numbers(x):
    y = CONV(x)
    n = y.abs().max().item()
    smaller, larger = min(n, 0.25), max(0.5, n)
    return y * smaller * larger * math.floor(n + 3) * math.ceil(n) * math.sqrt(larger)


@pytest.mark.parametrize("model", [loops, rounds, computes_with_numbers])
def test_what_depends_on_tensors_is_compared(model):
    x = image().clamp(-1, 1)
    program = mlir_npu.capture(model, x, train=True)
    torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
    try:
        found = program(x * 16)
    except MismatchError as error:
        assert "test_python_between.py" in str(error)
    else:
        torch.testing.assert_close(found, model(x * 16), rtol=1e-4, atol=1e-5)


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
