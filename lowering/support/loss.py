"""Losses and their gradients."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule


@rule(
    "aten.mse_loss.default",
    "aten.smooth_l1_loss.default",
    "aten.huber_loss.default",
    "aten.binary_cross_entropy_with_logits.default",
)
def loss(node: fx.Node) -> str | None:
    """mse_loss, smooth_l1_loss, huber_loss and binary_cross_entropy_with_logits, with any
    reduction."""
    return None


@rule(
    "aten.mse_loss_backward.default",
    "aten.smooth_l1_loss_backward.default",
    "aten.huber_loss_backward.default",
    "aten.binary_cross_entropy_backward.default",
)
def loss_backward(node: fx.Node) -> str | None:
    """Gradients of mse_loss, smooth_l1_loss, huber_loss and binary_cross_entropy."""
    return "beta=0 leaves no bend" if arguments(node).get("beta") == 0 else None


@rule("aten.xlogy.Tensor")
def xlogy(node: fx.Node) -> str | None:
    """x * log(y), of which kl_div is made."""
    return None
