"""The operators mlir_npu::max_pool2d_backward and max_pool3d_backward: the gradient of a max pool,
from its input alone.

ATen's take the indices of the maxima, which the forward would have to make and keep, 8 bytes for
each. These find the maxima again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten


def _operator(name: str, pool: Callable, backward: Callable) -> torch._ops.OpOverload:
    @torch.library.custom_op(f"mlir_npu::{name}", mutates_args=())
    def from_input(
        grad: Tensor,
        x: Tensor,
        kernel_size: list[int],
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        ceil_mode: bool,
    ) -> Tensor:
        window = kernel_size, stride, padding, dilation, ceil_mode
        _, indices = pool(x, *window)
        return backward(grad, x, *window, indices)

    @from_input.register_fake
    def _(grad, x, kernel_size, stride, padding, dilation, ceil_mode):
        return torch.empty_like(x)

    return getattr(torch.ops.mlir_npu, name).default


max_pool2d_backward = _operator(
    "max_pool2d_backward", aten.max_pool2d_with_indices, aten.max_pool2d_with_indices_backward
)
max_pool3d_backward = _operator(
    "max_pool3d_backward", aten.max_pool3d_with_indices, aten.max_pool3d_with_indices_backward
)
