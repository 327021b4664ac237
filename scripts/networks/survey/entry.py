"""One network of the survey: how to build it and what to call it with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Entry:
    """`build` returns a module that maps `inputs()` to a tensor or a tuple of tensors.

    `recipe` changes when the network does. `fast`: one of the few that every test run compiles.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    recipe: str
    fast: bool = False


class Field(nn.Module):
    """A model of transformers as a function from one tensor to one field of its output."""

    def __init__(self, model: nn.Module, argument: str, field: str) -> None:
        super().__init__()
        self.model = model
        self.argument, self.field = argument, field

    def forward(self, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        return getattr(self.model(**{self.argument: x}), self.field)


def recipe(*parts: object) -> str:
    """A short text that differs where the parts do."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def transformers_model(
    model_class: str, settings: Mapping[str, Any], argument: str, field: str
) -> nn.Module:
    """A model with seeded random weights, without dropout: its masks are random numbers, which no
    two implementations share."""
    import transformers

    torch.manual_seed(0)
    cls = getattr(transformers, model_class)
    config = cls.config_class(**settings)
    for name, value in vars(config).items():
        if "drop" in name and isinstance(value, float):
            setattr(config, name, 0.0)
    model = cls(config)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return Field(vary(model), argument, field)


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    """A module of ours with random weights that are the same every time."""
    torch.manual_seed(0)
    return vary(build())


def vary(model: nn.Module) -> nn.Module:
    """Random weights for an untrained network, that keep signals alive.

    Biases and scales of a fresh one are all 0, 1 or 1e-6, which would hide mistakes in how they are
    used; and where matrices are small, what reaches the last layer is little but its bias.
    """
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in filter(torch.numel, model.parameters()):
            if parameter.dim() > 1:
                deviation = parameter[0].numel() ** -0.5
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
            else:
                noise = torch.rand(parameter.shape, generator=generator) - 0.5
                parameter.copy_(0.5 * noise + bool(parameter.mean() > 0.5))
    return model


def noise(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    """Inputs of mean 0 and deviation 1."""
    return lambda: (torch.randn(*shape, generator=torch.Generator().manual_seed(7)),)
