"""Batch normalization with running statistics: one product and one sum per element."""

from __future__ import annotations

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
    if training:
        return NotImplemented
    return _batch_norm(x, weight, bias, mean, var, eps), x.new_empty(0), x.new_empty(0), mean, var
