"""Decompositions for export, in eager, against the calls that they stand for."""

import pytest
import torch

from mlir_npu.export.indexing import INDEXING
from mlir_npu.export.ordering import ORDERING

aten = torch.ops.aten
TABLE = {**INDEXING, **ORDERING}
X = torch.randn(4, 5, 6)
I = torch.tensor([[3, 0], [1, 1]])  # noqa: E741
NAN = torch.tensor([[1.0, torch.nan, 3.0, torch.nan], [2.0, 2.0, -torch.inf, torch.inf]])

CALLS = [
    (aten.embedding.default, (torch.randn(4, 3), I)),
    (aten.embedding_dense_backward.default, (torch.randn(2, 2, 3), I, 5, -1, False)),
    (aten.embedding_dense_backward.default, (torch.randn(2, 2, 3), I, 5, 1, False)),
    (aten.index_select.default, (X, 1, torch.tensor([4, 0, 0]))),
    (aten.gather.default, (X, -1, torch.randint(0, 6, (3, 5, 2)))),
    (aten.gather.default, (X, 0, torch.randint(0, 4, (7, 2, 6)))),
    (aten.scatter.src, (X, 1, torch.tensor([[[2] * 6]] * 4), torch.randn(4, 3, 6))),
    (aten.scatter.value, (X, 0, torch.full((1, 5, 6), 3), 2.0)),
    (aten.scatter_add.default, (X, 2, torch.randint(0, 6, (4, 5, 9)), torch.randn(4, 5, 9))),
    (aten.index.Tensor, (X, [I])),
    (aten.index.Tensor, (X, [None, I])),
    (aten.index.Tensor, (X, [None, I, torch.tensor([-1, 2])])),
    (aten.index_put.default, (X, [torch.tensor([2, 0])], torch.randn(2, 5, 6))),
    (aten.index_put.default, (X, [I, I + 1], torch.randn(6), True)),
    (aten.max.dim, (NAN, 1)),
    (aten.min.dim, (NAN, 1, True)),
    (aten.argmax.default, (X,)),
    (aten.argmax.default, (NAN, 1, True)),
    (aten.argmin.default, (X, -2)),
    (aten.topk.default, (X, 3)),
    (aten.topk.default, (X, 2, 1, False)),
    (aten.sort.default, (X, 0, True)),
    (aten.cumsum.default, (X, 1)),
    (aten.cumsum.default, (I, 0)),
]


@pytest.mark.parametrize(
    ("call", "arguments"), CALLS, ids=[f"{number}-{call}" for number, (call, _) in enumerate(CALLS)]
)
def test_decompositions(call, arguments):
    ours, theirs = TABLE[call](*arguments), call(*arguments)
    pairs = zip(ours, theirs) if isinstance(theirs, tuple) else [(ours, theirs)]
    for one, other in pairs:
        torch.testing.assert_close(one, other, equal_nan=True)


def test_places_that_are_none_count_for_nothing():
    wrong = torch.tensor([7, -1])
    assert not INDEXING[aten.embedding.default](torch.ones(4, 3), wrong).any()
    assert not INDEXING[aten.gather.default](torch.ones(4, 2), 0, wrong.reshape(1, 2)).any()
    assert not INDEXING[aten.index.Tensor](torch.ones(4, 2), [torch.tensor([7, -9])]).any()
    grad = INDEXING[aten.embedding_dense_backward.default](torch.ones(2, 3), wrong, 4, -1, False)
    assert not grad.any()
