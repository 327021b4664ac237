"""The operator mlir_npu::max_pool2d_backward: the gradient of a max pool, from its input alone.

ATen's takes the indices of the maxima, which the forward would have to make and keep, 8 bytes for
each. This one finds the maxima again.
"""

from __future__ import annotations

import torch
from torch import Tensor

aten = torch.ops.aten


@torch.library.custom_op("mlir_npu::max_pool2d_backward", mutates_args=())
def _max_pool2d_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> Tensor:
    window = kernel_size, stride, padding, dilation, ceil_mode
    _, indices = aten.max_pool2d_with_indices(x, *window)
    return aten.max_pool2d_with_indices_backward(grad, x, *window, indices)


@_max_pool2d_backward.register_fake
def _(grad, x, kernel_size, stride, padding, dilation, ceil_mode):
    return torch.empty_like(x)


max_pool2d_backward = torch.ops.mlir_npu.max_pool2d_backward.default
