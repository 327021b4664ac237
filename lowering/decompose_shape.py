"""Views of tensors whose memory order the compiler chose."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, decomposes


@decomposes(aten.view.default, aten._unsafe_view.default)
def view(x: Tensor, size: Sequence[int]) -> Tensor:
    """Inside a region memory order is the compiler's choice, so a view may look at permuted
    tensors."""
    if x.is_contiguous():
        return NotImplemented
    return aten.view(aten.clone(x, memory_format=torch.contiguous_format), size)


@decomposes(aten.squeeze.dims)
def squeeze_dims(x: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted((dim % x.dim() for dim in dims), reverse=True):
        x = aten.squeeze.dim(x, dim)
    return x
