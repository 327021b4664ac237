"""Constants that a program makes, which are folded, in another order than they were made in."""

import pytest
import torch
from parity import compile_model
from torch.nn import functional as F

X = torch.randn(1, 512)

MODELS = {
    "weights": lambda x: F.linear(x, torch.full((300, 512), 0.5)),
    "factor": lambda x: x @ torch.ones(300, 512).t(),
    "batch": lambda x: x[None] @ torch.ones(1, 300, 512).mT,
    "filter": lambda x: F.conv2d(x.view(1, 8, 8, 8), torch.ones(8, 4, 3, 3).transpose(0, 1)),
    "channels last": lambda x: F.conv2d(
        x.view(1, 8, 8, 8), torch.ones(4, 8, 3, 3).to(memory_format=torch.channels_last)
    ),
    "numbers": lambda x: x.view(8, 8, 8) + torch.arange(64.0).view(8, 8).t(),
    "one column": lambda x: x.view(8, 8, 8) * torch.arange(8.0).view(1, 8).t(),
    "expanded": lambda x: x.view(8, 8, 8) * torch.arange(8.0).view(8, 1).expand(8, 8).t(),
}


@pytest.mark.parametrize("name", MODELS)
def test_constants_in_another_order(name):
    model = MODELS[name]
    compiled = compile_model(model, min_region_macs=0, strict=True)
    torch.testing.assert_close(compiled(X), model(X), rtol=1e-4, atol=1e-4)
