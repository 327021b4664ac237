"""Values that only Python knows: those of uncompiled calls are listed with the line of the call,
whatever they are equal to; sizes, literals, attributes and compiled functions are not."""

import math
import os
import random
import time

import numpy as np
import pytest
import torch
from torch import nn

import mlir_npu

torch.manual_seed(0)
CONV = nn.Conv2d(2, 3, 3)


def image() -> torch.Tensor:
    return torch.randn(1, 2, 8, 8)


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
