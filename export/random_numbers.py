"""Random numbers of a program without Python: its caller gives them, with every call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, fx

aten = torch.ops.aten


@dataclass(frozen=True)
class Random:
    """Numbers of a distribution: "uniform" in [0, 1), or "normal" with mean 0 and variance 1."""

    distribution: Literal["uniform", "normal"]
    shape: tuple[int, ...]
    dtype: torch.dtype


def draws(node: fx.Node) -> Random | None:
    """What a call needs; None for calls that draw nothing."""
    distribution = _DISTRIBUTIONS.get(node.target)
    if distribution is None:
        return None
    value = node.meta["val"]
    value = value[0] if isinstance(value, (tuple, list)) else value
    if node.target is aten.native_dropout.default and (node.args[2] is False or not node.args[1]):
        return None
    dtype = torch.float32 if value.dtype in (torch.float16, torch.bfloat16) else value.dtype
    return Random(distribution, tuple(value.shape), dtype)


def native_dropout(
    x: Tensor, p: float, train: bool | None, random: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    if random is None:
        return x, torch.ones_like(x, dtype=torch.bool)
    kept = random < 1 - p
    scale = 1 / (1 - p) if p < 1 else 0.0
    return torch.where(kept, x * scale, torch.zeros_like(x)), kept


def native_dropout_backward(grad: Tensor, mask: Tensor, scale: float) -> Tensor:
    return torch.where(mask, grad * scale, torch.zeros_like(grad))


def bernoulli(x: Tensor, p: float = 0.5, random: Tensor | None = None) -> Tensor:
    return (random < p).to(x.dtype)


def bernoulli_of(x: Tensor, random: Tensor | None = None) -> Tensor:
    return (random < x).to(x.dtype)


def drawn(*_: object, random: Tensor | None = None, dtype: object = None, **__: object) -> Tensor:
    return random if dtype is None else random.to(dtype)


_DISTRIBUTIONS = {
    aten.native_dropout.default: "uniform",
    aten.bernoulli.p: "uniform",
    aten.bernoulli.default: "uniform",
    aten.rand.default: "uniform",
    aten.rand_like.default: "uniform",
    aten.randn.default: "normal",
    aten.randn_like.default: "normal",
}
RANDOM: dict[torch._ops.OpOverload, Callable] = {
    aten.native_dropout.default: native_dropout,
    aten.native_dropout_backward.default: native_dropout_backward,
    aten.bernoulli.p: bernoulli,
    aten.bernoulli.default: bernoulli_of,
    aten.rand.default: drawn,
    aten.rand_like.default: drawn,
    aten.randn.default: drawn,
    aten.randn_like.default: drawn,
}
