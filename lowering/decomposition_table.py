"""The table of decompositions and what they share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten

TABLE: dict[torch._ops.OpOverload, Callable] = {}


def decomposes(*overloads: torch._ops.OpOverload) -> Callable[[Callable], Callable]:
    """Register a decomposition. It may return NotImplemented to leave a call as it is."""

    def register(function: Callable) -> Callable:
        TABLE.update(dict.fromkeys(overloads, function))
        return function

    return register


def constant(value: float, like: Tensor) -> Tensor:
    """A number as a tensor of the type of `like`.

    With Python numbers torch-mlir compares in f64 and keeps a rounding from f64 in the code.
    """
    return aten.scalar_tensor(value, dtype=like.dtype)


def select(condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return aten.where.self(condition, first, second)


def per_channel(values: Tensor, like: Tensor) -> Tensor:
    """One value per channel (dimension 1), ready to broadcast to `like`."""
    return aten.view(values, [1, values.shape[0]] + [1] * (like.dim() - 2))


def sum_over_images(x: Tensor) -> Tensor:
    """One sum per channel, of the sums of lines: with fewer terms each rounds less."""
    lines = aten.sum.dim_IntList(x, [x.dim() - 1]) if x.dim() > 2 else x
    return aten.sum.dim_IntList(lines, [dim for dim in range(lines.dim()) if dim != 1])
