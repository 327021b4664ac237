"""What counts as the same numbers."""

import pytest
import torch

from mlir_npu.runtime.signature import Argument, FunctionSignature, Signature
from mlir_npu.runtime.trial import random_arguments, same_numbers


def test_rounding_is_forgiven_and_nothing_else():
    expected = torch.linspace(-3, 3, 50)
    expected[3] = float("nan")
    assert same_numbers([expected * (1 + 1e-6) + 1e-6], [expected])
    assert not same_numbers([expected * 1.001], [expected])
    assert not same_numbers([torch.zeros(50)], [expected])
    one_off = expected.clone()
    one_off[7] += 0.01
    assert not same_numbers([one_off], [expected])
    assert not same_numbers([expected.nan_to_num()], [expected])


def test_other_results_are_not_the_same():
    x = torch.zeros(4)
    assert not same_numbers([x], [x, x])
    assert not same_numbers([x], [torch.zeros(2, 2)])
    assert not same_numbers([x], [x.double()])


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_whole_numbers_are_exact(dtype):
    x = torch.tensor([0, 1, 1]).to(dtype)
    assert same_numbers([x.clone()], [x])
    assert not same_numbers([torch.tensor([0, 1, 0]).to(dtype)], [x])


def test_arguments_are_the_same_every_time():
    arguments = (
        Argument("input", (2, 3), "f32"),
        Argument("input", (4,), "i64"),
        Argument("parameter", (3,), "f32"),
        Argument("output", (2, 3), "f32"),
    )
    signature = Signature(FunctionSignature("main", arguments), None)
    first, again = random_arguments(signature), random_arguments(signature)
    assert [tuple(x.shape) for x in first] == [(2, 3), (4,), (3,)]
    assert all(map(torch.equal, first, again))
    assert not first[1].any()  # they may be positions
