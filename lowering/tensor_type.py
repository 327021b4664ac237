"""Shape, strides and dtype of a tensor of a program, and whether it requires a gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class TensorType:
    """strides: in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool = False

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorType:
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        return cls(shape, strides, tensor.dtype, tensor.requires_grad)
