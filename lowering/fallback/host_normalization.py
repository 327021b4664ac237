"""How statistics and normalizations of host parts are spelled before torch-mlir sees them."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS

aten = torch.ops.aten


def var_mean(
    x: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    """Two passes, in the tensor's type; torch-mlir computes in f64."""
    dims = (dim or list(range(x.dim()))) if x.dim() else []
    count = math.prod(x.shape[d] for d in dims)
    mean = aten.mean.dim(x, dims, True)
    distance = x - mean
    degrees = max(count - (1 if correction is None else correction), 0)
    variance = aten.sum.dim_IntList(distance * distance, dims, keepdim) / degrees
    return variance, mean if keepdim else aten.squeeze.dims(mean, dims)


def var(
    x: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def native_group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    pixels: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """On one view of the image in which groups are a dimension of their own."""
    grouped = aten.reshape.default(x, [batch, groups, channels // groups, *x.shape[2:]])
    dims = list(range(2, grouped.dim()))
    variance, mean = aten.var_mean.correction(grouped, dims, correction=0, keepdim=True)
    deviation = aten.rsqrt.default(variance + eps)
    result = (grouped - mean) * deviation
    per_channel = [1, groups, channels // groups] + [1] * (grouped.dim() - 3)
    if weight is not None:
        result = result * aten.reshape.default(weight, per_channel)
    if bias is not None:
        result = result + aten.reshape.default(bias, per_channel)
    statistics = (aten.squeeze.dims(value, dims) for value in (mean, deviation))
    return aten.reshape.default(result, list(x.shape)), *statistics


def batch_norm_functional(x, weight, bias, mean, var, training, momentum, eps):
    """Statistics of the batch by torch's decomposition, running ones as the NPU computes."""
    own = aten._native_batch_norm_legit_functional.default
    table = get_decompositions([own]) if training else NPU_DECOMPOSITIONS
    return table[own](x, weight, bias, mean, var, training, momentum, eps)
