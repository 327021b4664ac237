"""Large weights of 1x1 convolutions and linear layers are read where the model has them."""

import math

import pytest
import torch
from parity import assert_same
from torch import nn

import mlir_npu

MIB = 1 << 20


def prepared_bytes(program) -> int:
    """What the program's regions keep in an order of their own."""
    mains = [part.signature.main for part in program._executable.inner.parts.values()]
    kept = [main.arguments[i] for main in mains for i in main.slots("prepared")]
    return sum(4 * math.prod(argument.shape) for argument in kept)


def convolution(rows, columns, *, bias=True, batch=1):
    layer = nn.Conv2d(512, 1440, 1, bias=bias)
    return nn.Sequential(layer, nn.ReLU()).eval(), torch.randn(batch, 512, rows, columns)


def linear(rows):
    return nn.Sequential(nn.Linear(512, 1440), nn.ReLU()).eval(), torch.randn(rows, 512)


CASES = {
    "7x7": lambda: convolution(7, 7),
    "odd, without bias": lambda: convolution(5, 11, bias=False),
    "14x14": lambda: convolution(14, 14),
    "batch 4": lambda: convolution(7, 7, batch=4),
    "1 row": lambda: linear(1),
    "49 rows": lambda: linear(49),
    "256 rows": lambda: linear(256),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_they_are_not_copied(case, threads):
    torch.manual_seed(0)
    model, x = CASES[case]()
    program = mlir_npu.capture(model, x, options={"num_threads": threads})
    with torch.no_grad():
        assert_same(program(x), model(x))
        model[0].weight.mul_(-1.5)
        assert_same(program(x), model(x))
    assert prepared_bytes(program) < MIB / 2


@pytest.mark.parametrize("rows", [2, 16, 300])
def test_they_are_where_every_call_would_put_them_in_order_at_length(rows):
    torch.manual_seed(0)
    model, x = linear(rows)
    program = mlir_npu.capture(model, x)
    with torch.no_grad():
        assert_same(program(x), model(x))
    assert prepared_bytes(program) > MIB
