"""Gradients of convolutions, plain and transposed, as convolutions and sums."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mlir_npu.lowering.decompose_convolution_weights import weight_gradient
from mlir_npu.lowering.decompose_transposed_convolution import cropped, transposed_convolution
from mlir_npu.lowering.decompose_volume_backward import convolution_3d_backward
from mlir_npu.lowering.decomposition_table import aten, decomposes, sum_over_images


@decomposes(aten.convolution_backward.default)
def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """1-D as 2-D of height 1. The input gradient of a transposed convolution is a convolution, and
    in its weight gradient x and the gradient change places."""
    wants_input, wants_weight, wants_bias = output_mask
    bias = sum_over_images(grad) if wants_bias else None
    if x.dim() == 5:
        return *convolution_3d_backward(
            grad, x, weight, stride, padding, dilation, transposed, groups, wants_input,
            wants_weight,
        ), bias  # fmt: skip
    one_dimensional = x.dim() == 3
    if one_dimensional:
        grad, x, weight = grad.unsqueeze(2), x.unsqueeze(2), weight.unsqueeze(2)
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    by_input = by_weight = None
    if wants_input and transposed:
        by_input = aten.convolution(
            grad, weight, None, stride, padding, dilation, False, [0] * len(stride), groups
        )
        by_input = cropped(by_input, x.shape[2:])
    elif wants_input:
        by_input = transposed_convolution(
            grad, weight, x.shape[2:], stride, padding, dilation, groups
        )
    if wants_weight:
        image, windows = (grad, x) if transposed else (x, grad)
        by_weight = weight_gradient(image, windows, weight.shape, stride, padding, dilation, groups)
    if one_dimensional:
        by_input = None if by_input is None else aten.squeeze.dim(by_input, 2)
        by_weight = None if by_weight is None else aten.squeeze.dim(by_weight, 2)
    return by_input, by_weight, bias
