"""The gradient of attention, in calls that become machine code: matrix products and what is between
them. The weights of attention are computed again, from the logarithm of their sums."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten


def flash_attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    if dropout or key.shape[1] != query.shape[1]:
        return NotImplemented
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.matmul(query, key.mT) * scale
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = torch.where(allowed, scores, -torch.inf)
    weights = torch.exp(scores - logsumexp.unsqueeze(-1)).to(query.dtype)
    through = torch.matmul(grad, value.mT)
    mean = (grad * out).sum(-1, keepdim=True)
    of_scores = weights * (through - mean) * scale
    return (
        torch.matmul(of_scores, key),
        torch.matmul(of_scores.mT, query),
        torch.matmul(weights.mT, grad),
    )


ATTENTION: dict[torch._ops.OpOverload, Callable] = {
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: flash_attention_backward,
}
