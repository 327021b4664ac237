"""Softmax and attention: maxima, exponentials, sums and matrix products."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.decomposition_table import aten, constant, decomposes, select


@decomposes(aten._softmax.default)
def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    powers = aten.exp(x - aten.amax(x, [dim], True))
    return powers / aten.sum(powers, [dim], True)


@decomposes(aten._log_softmax.default)
def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    shifted = x - aten.amax(x, [dim], True)
    return shifted - aten.log(aten.sum(aten.exp(shifted), [dim], True))


@decomposes(aten._safe_softmax.default)
def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Zeros where all of a row is masked."""
    powers, total, _ = _masked_powers(x, dim)
    return powers / total


@decomposes(aten._scaled_dot_product_flash_attention_for_cpu.default)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """With all scores in memory. The second result is what the backward makes the weights of."""
    *batch, length, _ = query.shape
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = _per_key(query * factor, key, aten.transpose(key, -2, -1))
    scores = aten.view(scores, [*batch, length, key.shape[-2]])
    if is_causal:
        scores = scores + _future(*scores.shape[-2:], scores.dtype)
    if attn_mask is not None:
        scores = scores + attn_mask
    powers, total, largest = _masked_powers(scores, -1)
    result = aten.view(_per_key(powers, key, value), [*batch, length, value.shape[-1]]) / total
    return result, aten.squeeze.dim(largest + aten.log(total), -1)


def _per_key(left: Tensor, key: Tensor, right: Tensor) -> Tensor:
    """Matrix products where several heads of `left` share one of `right`: as one with more rows."""
    *batch, _, inner = left.shape
    if batch != list(key.shape[:-2]):
        left = aten.view(left, [*key.shape[:-2], -1, inner])
    return aten.matmul(left, right)


def _masked_powers(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """(exp(x - maximum), its sum, the maximum), with 0, 1 and 0 for rows that are -inf only."""
    largest = aten.amax(x, [dim], True)
    largest = select(largest < constant(torch.finfo(x.dtype).min, x), constant(0, x), largest)
    powers = aten.exp(x - largest)
    total = aten.sum(powers, [dim], True)
    return powers, select(total > constant(0, x), total, total * 0 + 1), largest


def _future(rows: int, columns: int, dtype: torch.dtype) -> Tensor:
    """-inf for what comes later, added to scores."""
    with _disable_current_modes():  # a literal of the traced graph, not a traced computation
        return torch.full((rows, columns), -math.inf, dtype=dtype).triu(1)
