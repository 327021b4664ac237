"""Positions as slices and repetitions."""

import random

import pytest
import torch
from aten_graphs import aten, one_call

from mlir_npu.lowering.decompose_gather import (
    Piece,
    padded_positions,
    pieces,
    reflected,
    replicated,
    take,
)
from mlir_npu.lowering.support import explain_support
from mlir_npu.lowering.support.gather import MAX_PIECES

X = torch.rand(2, 9, 11)


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([4], [Piece(4, 1)]),
        ([0, 1, 2, 3], [Piece(0, 4)]),
        ([1, 4, 7], [Piece(1, 3, step=3)]),
        ([0, 0, 1, 1, 2, 2], [Piece(0, 3, times=2)]),
        ([0, 0, 0, 1, 1, 2, 2, 3], [Piece(0, 1, times=3), Piece(1, 2, times=2), Piece(3, 1)]),
        ([2, 1, 0], [Piece(2, 1), Piece(1, 1), Piece(0, 1)]),
    ],
)
def test_pieces_are_as_long_as_they_get(positions, expected):
    assert pieces(positions) == expected


def test_random_positions_are_taken():
    numbers = random.Random(0)
    for _ in range(100):
        positions = [numbers.randrange(9) for _ in range(numbers.randrange(1, 12))]
        positions = sorted(positions) if numbers.random() < 0.5 else positions
        assert torch.equal(take(X, 1, positions), X[:, positions])


@pytest.mark.parametrize(("mode", "rule"), [("reflect", reflected), ("replicate", replicated)])
def test_padding_takes_what_eager_takes(mode, rule):
    found = X
    for dim, positions in padded_positions(X.shape, [3, 10, 8, 0], rule):
        found = take(found, dim, positions)
    expected = torch.nn.functional.pad(X, [3, 10, 8, 0], mode=mode)
    assert torch.equal(found, expected)


def reason(indices):
    graph_module = one_call(aten.index.Tensor, X, indices)
    return explain_support(
        graph_module.graph.find_nodes(op="call_function", target=aten.index.Tensor)[0]
    )


UP = torch.arange(8)


@pytest.mark.parametrize(
    ("indices", "words"),
    [
        ([None, UP, UP], "span no grid"),  # pairs of positions, not rows and columns
        ([None, UP[:, None]], "span no grid"),  # a dimension more than was named
        ([UP[:2, None], None, UP], "not neighbours"),
        ([None, None, torch.tensor([11])], "outside of the 11 elements"),
        ([None, None, torch.tensor([-12])], "outside of the 11 elements"),
        ([None, 8 - torch.arange(2 * MAX_PIECES) % 9], f"more than {MAX_PIECES}"),
    ],
    ids=str,
)
def test_other_indices_are_rejected_with_the_reason(indices, words):
    assert words in reason(indices)


def test_positions_computed_at_run_time_are_rejected():
    graph_module = one_call(aten.index.Tensor, X, [None, UP])
    graph = graph_module.graph
    (index,) = graph.find_nodes(op="get_attr")
    with graph.inserting_before(index):
        argument = graph.placeholder("positions")
    argument.meta.update(index.meta)
    index.replace_all_uses_with(argument)
    (call,) = graph.find_nodes(op="call_function", target=aten.index.Tensor)
    assert "is int64" in explain_support(call)
