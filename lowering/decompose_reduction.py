"""Reductions that are made of sums, and those of all dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, decomposes


@decomposes(aten.linalg_vector_norm.default)
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The Euclidean one; the support rule says of others that they stay on the host."""
    if ord != 2 or dtype not in (None, x.dtype):
        return NotImplemented
    return aten.sqrt(aten.sum.dim_IntList(x * x, dim, keepdim))


@decomposes(aten.sum.default)
def sum_of_all(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Lines first: of fewer terms each sum rounds less."""
    if dtype is not None or not x.dim():
        return NotImplemented
    lines = aten.sum.dim_IntList(x, [x.dim() - 1]) if x.dim() > 1 else x
    return aten.sum.dim_IntList(lines, list(range(lines.dim())))


@decomposes(aten.mean.default)
def mean_of_all(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    if dtype is not None or not x.dim():
        return NotImplemented
    return aten.sum.default(x) / x.numel()
