"""What Python of a captured program read of tensors, decided upon and asserted: it is compared in
every call, and another branch is an error with the line."""

import math

import pytest
import torch
from torch import nn

import mlir_npu
from mlir_npu.errors import MismatchError

torch.manual_seed(0)
CONV = nn.Conv2d(2, 3, 3)


def image() -> torch.Tensor:
    return torch.randn(1, 2, 8, 8)


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
        assert "test_compared_values.py" in str(error)
    else:
        torch.testing.assert_close(found, model(x * 16), rtol=1e-4, atol=1e-5)


def asserts_of_a_tensor(x):
    y = CONV(x)
    assert y.max() < 1e3, "too large"
    return y * 2


def asserts_of_a_number(x):
    y = CONV(x)
    n = y.max().item()
    assert n < 1e3
    return y * n


def checks_a_range(x):
    y = CONV(x)
    n = y.max().to(torch.int64).item()
    torch._check(n >= -1000)
    torch._check(n < 1000)
    return y * n


def checks_all_elements(x):
    y = CONV(x)
    torch._check_tensor_all(y < 1e3)
    return y * 2


def asserts_of_an_integer(x):
    y = CONV(x)
    torch._assert_async((y.max() < 1e3).int() * 3)
    return y * 2


@pytest.mark.parametrize(
    "model, line",
    [
        (asserts_of_a_tensor, 'assert y.max() < 1e3, "too large"'),
        (asserts_of_a_number, "assert n < 1e3"),
        (checks_a_range, "n = y.max().to(torch.int64).item()"),  # Dynamo knows ranges of numbers
        (checks_all_elements, "torch._check_tensor_all(y < 1e3)"),
        (asserts_of_an_integer, "torch._assert_async((y.max() < 1e3).int() * 3)"),
    ],
)
def test_assertions_are_checked_in_every_call(model, line):
    x = image()
    program = mlir_npu.capture(model, x, train=True)
    torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(MismatchError) as caught:
        program(x * 1e6)
    assert f"({line}): the value is False" in str(caught.value)
