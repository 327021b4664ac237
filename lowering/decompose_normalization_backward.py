"""Gradients of normalizations and softmax."""

from __future__ import annotations

from collections.abc import Sequence

import torch
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


@decomposes(aten.native_layer_norm_backward.default)
def layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    outer = list(range(x.dim() - len(normalized_shape)))
    dims = list(range(len(outer), x.dim()))
    normalized = (x - mean) * rstd
    scaled = grad if weight is None else grad * weight
    wants_input, wants_weight, wants_bias = output_mask
    return (
        _through_statistics(scaled, normalized, rstd, dims) if wants_input else None,
        _summed(grad * normalized, outer) if wants_weight else None,
        _summed(grad, outer) if wants_bias else None,
    )


@decomposes(aten.native_group_norm_backward.default)
def group_norm_backward(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    n: int,
    channels: int,
    area: int,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    split = [n, groups, channels // groups, *x.shape[2:]]
    per_group = [n, groups] + [1] * (len(split) - 2)
    rstd = aten.view(rstd, per_group)
    normalized = (aten.view(x, split) - aten.view(mean, per_group)) * rstd
    scaled = aten.view(grad if weight is None else grad * per_channel(weight, x), split)
    wants_input, wants_weight, wants_bias = output_mask
    by_input = None
    if wants_input:
        dims = list(range(2, len(split)))
        by_input = aten.view(_through_statistics(scaled, normalized, rstd, dims), x.shape)
    by_weight = sum_over_images(grad * aten.view(normalized, x.shape)) if wants_weight else None
    return by_input, by_weight, sum_over_images(grad) if wants_bias else None


def _through_statistics(grad: Tensor, normalized: Tensor, rstd: Tensor, dims: list[int]) -> Tensor:
    """By what was normalized: it changes mean and deviation too, so the gradient has no mean over
    dims, and none along `normalized`."""
    mean = aten.mean.dim(grad, dims, True)
    along = aten.mean.dim(grad * normalized, dims, True)
    return (grad - mean - normalized * along) * rstd


def _summed(x: Tensor, dims: list[int]) -> Tensor:
    return aten.sum.dim_IntList(x, dims) if dims else x


@decomposes(aten._softmax_backward_data.default)
def softmax_backward(grad: Tensor, y: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    weighted = grad * y
    return weighted - y * aten.sum.dim_IntList(weighted, [dim], True)


@decomposes(aten._log_softmax_backward_data.default)
def log_softmax_backward(grad: Tensor, y: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    return grad - aten.exp(y) * aten.sum.dim_IntList(grad, [dim], True)
