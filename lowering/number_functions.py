"""What Python does with numbers that it read of tensors, done with tensors without dimensions."""

from __future__ import annotations

import math

import torch


def number(tensor: torch.Tensor) -> torch.Tensor:
    """As Python would compute with it: no gradient, and in double precision."""
    value = tensor.detach().reshape(())
    if value.dtype is torch.bool:
        return value
    return value.to(torch.float64 if value.is_floating_point() else torch.int64)


def rounded(value: torch.Tensor, digits: int | None = None) -> torch.Tensor:
    if digits is None:
        return torch.round(value).to(torch.int64)
    return torch.round(value, decimals=digits)


def _floor(value: torch.Tensor) -> torch.Tensor:
    return torch.floor(value).to(torch.int64)


def _ceil(value: torch.Tensor) -> torch.Tensor:
    return torch.ceil(value).to(torch.int64)


def _largest(one: torch.Tensor | float, other: torch.Tensor | float) -> torch.Tensor:
    value, bound = (one, other) if isinstance(one, torch.Tensor) else (other, one)
    return torch.clamp(value, min=bound)


def _least(one: torch.Tensor | float, other: torch.Tensor | float) -> torch.Tensor:
    value, bound = (one, other) if isinstance(one, torch.Tensor) else (other, one)
    return torch.clamp(value, max=bound)


OF_TENSORS = {
    torch.sym_not: torch.logical_not,
    torch.sym_ite: torch.where,
    torch.sym_max: _largest,
    torch.sym_min: _least,
    torch._sym_sqrt: torch.sqrt,
    math.floor: _floor,
    math.ceil: _ceil,
}
