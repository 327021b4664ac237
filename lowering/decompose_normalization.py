"""Normalizations: with running statistics one product and one sum per element, with those of the
input two passes that make them first."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, decomposes, per_channel


def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float
) -> Tensor:
    """x * scale + shift, with scale and shift made of parameters only, as eager does on the cpu."""
    scale = aten.rsqrt(var + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return x * per_channel(scale, x) + per_channel(shift, x)


@decomposes(aten._native_batch_norm_legit_no_training.default)
def batch_norm_no_training(x, weight, bias, mean, var, momentum, eps) -> tuple[Tensor, ...]:
    return _batch_norm(x, weight, bias, mean, var, eps), x.new_empty(0), x.new_empty(0)


@decomposes(aten._batch_norm_no_update.default)
def batch_norm_no_update(x, weight, bias, mean, var, momentum, eps) -> tuple[Tensor, ...]:
    nothing = x.new_empty(0)
    return _batch_norm(x, weight, bias, mean, var, eps), nothing, nothing, nothing


@decomposes(aten.native_batch_norm.default)
def native_batch_norm(x, weight, bias, mean, var, training, momentum, eps) -> tuple[Tensor, ...]:
    if training:
        return NotImplemented
    return _batch_norm(x, weight, bias, mean, var, eps), x.new_empty(0), x.new_empty(0)


@decomposes(aten._native_batch_norm_legit_functional.default)
def batch_norm_functional(
    x, weight, bias, mean, var, training, momentum, eps
) -> tuple[Tensor, ...]:
    if not training:
        result = _batch_norm(x, weight, bias, mean, var, eps)
        return result, x.new_empty(0), x.new_empty(0), mean, var
    result, saved_mean, saved_rstd, batch_var = _batch_statistics(x, weight, bias, eps)
    count = x.numel() // x.shape[1]
    unbiased = batch_var * (count / max(count - 1, 1))
    new_mean = saved_mean * momentum + mean * (1 - momentum)
    new_var = unbiased * momentum + var * (1 - momentum)
    return result, saved_mean, saved_rstd, new_mean, new_var


@decomposes(aten._native_batch_norm_legit.no_stats)
def batch_norm_no_stats(x, weight, bias, training, momentum, eps) -> tuple[Tensor, ...]:
    return _batch_statistics(x, weight, bias, eps)[:3]


def _batch_statistics(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(result, mean, 1 / deviation, variance), the last three per channel."""
    dims = [0, *range(2, x.dim())]
    normalized, mean, var, rstd = _normalize(x, dims, eps)
    result = _scale_and_shift(
        normalized,
        None if weight is None else per_channel(weight, x),
        None if bias is None else per_channel(bias, x),
    )
    mean, var, rstd = (aten.view(value, [x.shape[1]]) for value in (mean, var, rstd))
    return result, mean, rstd, var


@decomposes(aten.native_layer_norm.default)
def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    normalized, mean, _, rstd = _normalize(x, dims, eps)
    return _scale_and_shift(normalized, weight, bias), mean, rstd


@decomposes(aten.native_group_norm.default)
def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    n: int,
    channels: int,
    area: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm of each group of channels, with a scale and a shift per channel."""
    image = list(x.shape[2:])
    split = aten.view(x, [n, groups, channels // groups, *image])
    normalized, mean, _, rstd = _normalize(split, list(range(2, split.dim())), eps)
    normalized = aten.view(normalized, [n, channels, *image])
    result = _scale_and_shift(
        normalized,
        None if weight is None else per_channel(weight, x),
        None if bias is None else per_channel(bias, x),
    )
    return result, aten.view(mean, [n, groups]), aten.view(rstd, [n, groups])


def _normalize(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(x with mean 0 and deviation 1 over dims, mean, variance, 1 / deviation)."""
    mean = aten.mean.dim(x, dims, True)
    centred = x - mean
    var = aten.mean.dim(centred * centred, dims, True)
    rstd = aten.rsqrt(var + eps)
    return centred * rstd, mean, var, rstd


def _scale_and_shift(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
