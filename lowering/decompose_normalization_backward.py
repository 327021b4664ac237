"""Gradients of batch normalization."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, decomposes, per_channel, sum_over_images


@decomposes(aten.native_batch_norm_backward.default)
def batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor | None,
    rstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """With the statistics of the batch, x changes them too: the gradient by x has no mean, and none
    along x."""
    if not train:
        mean, rstd = running_mean, aten.rsqrt(running_var + eps)
    centred = x - per_channel(mean, x)
    total, along = sum_over_images(grad), sum_over_images(grad * centred)
    scale = rstd if weight is None else rstd * weight
    if train:
        count = x.numel() // x.shape[1]
        mean_grad, slope = total * (1 / count), along * rstd * rstd * (1 / count)
        grad = grad - per_channel(mean_grad, x) - centred * per_channel(slope, x)
    return grad * per_channel(scale, x), along * rstd, total
