"""Arithmetic of tensors of different element types: each is converted to that of the result."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten


def _converted(overload: torch._ops.OpOverload) -> Callable:
    def call(x: Tensor, y: Tensor, **keywords: object) -> Tensor:
        if not isinstance(y, Tensor) or x.dtype == y.dtype or torch.bool in (x.dtype, y.dtype):
            return NotImplemented
        wanted = torch.result_type(x, y)
        return overload(x.to(wanted), y.to(wanted), **keywords)

    return call


MIXED_TYPES: dict[torch._ops.OpOverload, Callable] = {
    overload: _converted(overload)
    for overload in (
        *(aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor),
        *(aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor, aten.le.Tensor),
        *(aten.gt.Tensor, aten.ge.Tensor),
    )
}
