"""Reductions that are made of sums."""

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
    """The Euclidean one (a support rule lets no other through)."""
    return aten.sqrt(aten.sum.dim_IntList(x * x, dim, keepdim))
