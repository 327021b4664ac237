"""Losses: a value for every element, and its mean or sum."""

from __future__ import annotations

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, constant, decomposes, select

NONE, MEAN, SUM = 0, 1, 2


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    if reduction == NONE or not loss.dim():
        return loss
    return aten.mean.default(loss) if reduction == MEAN else aten.sum.default(loss)


def _share(grad: Tensor, x: Tensor, reduction: int) -> Tensor:
    """The gradient of the loss of one element."""
    return grad * (1 / x.numel()) if reduction == MEAN else grad


@decomposes(aten.mse_loss.default)
def mse_loss(x: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    distance = x - target
    return _reduced(distance * distance, reduction)


@decomposes(aten.mse_loss_backward.default)
def mse_loss_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    return (x - target) * (_share(grad, x, reduction) * 2)


@decomposes(aten.smooth_l1_loss.default)
def smooth_l1_loss(x: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1) -> Tensor:
    distance = aten.abs(x - target)
    far = distance - 0.5 * beta
    if not beta:
        return _reduced(far, reduction)
    near = distance * distance * 0.5 / beta
    return _reduced(select(distance < constant(beta, x), near, far), reduction)


@decomposes(aten.smooth_l1_loss_backward.default)
def smooth_l1_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    return _bounded(x - target, beta) / beta * _share(grad, x, reduction)


@decomposes(aten.huber_loss.default)
def huber_loss(x: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1) -> Tensor:
    distance = aten.abs(x - target)
    far = (distance - 0.5 * delta) * delta
    near = distance * distance * 0.5
    return _reduced(select(distance < constant(delta, x), near, far), reduction)


@decomposes(aten.huber_loss_backward.default)
def huber_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, delta: float
) -> Tensor:
    return _bounded(x - target, delta) * _share(grad, x, reduction)


def _bounded(distance: Tensor, limit: float) -> Tensor:
    return aten.clamp.default(distance, -limit, limit)


@decomposes(aten.binary_cross_entropy_backward.default)
def binary_cross_entropy_backward(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    variance = aten.clamp_min((1 - x) * x, 1e-12)
    result = (x - target) / variance * _share(grad, x, reduction)
    return result if weight is None else result * weight


@decomposes(aten.binary_cross_entropy_with_logits.default)
def binary_cross_entropy_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """log(1 + exp(-x)) without overflow."""
    softplus = aten.log1p(aten.exp(-aten.abs(x))) + aten.relu(-x)
    if pos_weight is not None:
        softplus = softplus * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * x + softplus
    return _reduced(loss if weight is None else loss * weight, reduction)


@decomposes(aten.xlogy.Tensor)
def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """0 where x is 0, unless y is NaN."""
    product = x * aten.log(y)
    zero = constant(0, x)
    inside = select(aten.ne.Tensor(x, zero), product, x * 0)
    return select(aten.ne.Tensor(y, y), y, inside)
