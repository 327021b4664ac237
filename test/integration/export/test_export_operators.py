"""Operators that work on indices, attention and recurrent layers: exported with their gradients,
run by a C program, against eager."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from c_program import needs_compiler
from test_export_training import check
from torch import nn
from torch.nn import functional as F

pytestmark = needs_compiler


class Model(nn.Module):
    """A linear layer, and a function of its result and other inputs."""

    def __init__(self, function, width: int = 16) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(width, width), function

    def forward(self, x, *others):
        return self.function(self.layer(x), *others)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        split = (t.reshape(2, 6, 2, 8).transpose(1, 2) for t in self.heads(x).chunk(3, -1))
        found = F.scaled_dot_product_attention(*split)
        return self.out(found.transpose(1, 2).reshape(2, 6, 16))


def attention_of_one(x):
    """Its gradients are viewed in the layout that eager gives them."""
    heads = x.reshape(2, 6, 2, 8).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads * 2, heads.sin())


ROWS = torch.tensor([1, 0, 3, 1])
CASES = {
    "embedding": (nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 8)), ROWS.reshape(2, 2)),
    "gather": (Model(lambda x, i: x.gather(1, i)), torch.randn(4, 16), ROWS.reshape(4, 1)),
    "index": (Model(lambda x, i: x[i]), torch.randn(4, 16), ROWS),
    "negative index": (Model(lambda x, i: x[i]), torch.randn(4, 16), ROWS - 4),
    "two indices": (Model(lambda x, i: x[i, i + 2]), torch.randn(4, 16), ROWS),
    "max": (Model(lambda x: x.max(1).values), torch.randn(4, 16)),
    "amax": (Model(lambda x: x.amax(1)), torch.randn(4, 16)),
    "topk": (Model(lambda x: x.topk(3)), torch.randn(4, 16)),
    "sort": (Model(lambda x: x.sort(0, descending=True)), torch.randn(5, 16)),
    "cumsum": (Model(lambda x: x.cumsum(1)), torch.randn(4, 16)),
    "attention": (Attention(), torch.randn(2, 6, 16)),
    "attention of one": (Model(attention_of_one), torch.randn(2, 6, 16)),
    "lstm": (nn.LSTM(8, 16), torch.randn(3, 2, 8)),
}


@pytest.mark.parametrize("name", CASES)
def test_with_gradients(tmp_path: Path, name: str) -> None:
    model, *inputs = CASES[name]
    check(model, *inputs, folder=tmp_path)
