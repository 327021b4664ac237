"""The loss of a classifier (nll_loss, what is left of cross_entropy), and its gradient, in calls
that become machine code.

In eager, targets are used as addresses. Here every class is compared with them:

    nll_loss(x, target)  ->  sum over rows of where(target == class, -weight * x, 0)

A target that is no class counts for nothing, where eager raises.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten
_NONE, _MEAN, _SUM = 0, 1, 2  # at::Reduction


def _chosen(x: Tensor, target: Tensor, ignored: int) -> Tensor:
    """Which elements the targets mean."""
    classes = x.shape[-1]
    target = target.unsqueeze(-1)
    chosen = target == torch.arange(classes)
    return chosen & (target != ignored) if 0 <= ignored < classes else chosen


def _of_chosen(chosen: Tensor, values: Tensor) -> Tensor:
    return torch.where(chosen, values, torch.zeros_like(values))


def nll_loss_forward(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    chosen = _chosen(x, target, ignore_index)
    weights = torch.ones_like(x) if weight is None else weight.expand(x.shape)
    losses = -_of_chosen(chosen, x * weights).sum(-1)
    if reduction == _NONE:
        return losses, torch.zeros((), dtype=x.dtype)
    total = _of_chosen(chosen, weights).sum()
    return losses.sum() / total if reduction == _MEAN else losses.sum(), total


def nll_loss_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total: Tensor,
) -> Tensor:
    weights = torch.ones_like(x) if weight is None else weight.expand(x.shape)
    share = grad / total if reduction == _MEAN else grad
    if share.dim():
        share = share.unsqueeze(-1)
    return _of_chosen(_chosen(x, target, ignore_index), -(weights * share))


CLASS_LOSS: dict[torch._ops.OpOverload, Callable] = {
    aten.nll_loss_forward.default: nll_loss_forward,
    aten.nll_loss_backward.default: nll_loss_backward,
}
