"""Gradients of normalizations."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import rule


@rule("aten.native_batch_norm_backward.default")
def batch_norm_backward(node: fx.Node) -> str | None:
    """Gradients of batch normalization, in training and in evaluation mode, by input, weight and
    bias."""
    return None
