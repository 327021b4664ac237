"""Gradients of normalizations and softmax."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.half_statistics import mistyped_statistics
from mlir_npu.lowering.support.reduction import one_number
from mlir_npu.lowering.support.rules import MAX_RANK, arguments, rule, shape


@rule("aten.native_batch_norm_backward.default")
def batch_norm_backward(node: fx.Node) -> str | None:
    """Gradients of batch normalization, in training and in evaluation mode, by input, weight and
    bias."""
    return mistyped_statistics(node)


@rule("aten.native_layer_norm_backward.default")
def layer_norm_backward(node: fx.Node) -> str | None:
    """Gradients of layer normalization, by input, weight and bias."""
    return mistyped_statistics(node)


@rule("aten.native_group_norm_backward.default")
def group_norm_backward(node: fx.Node) -> str | None:
    """Gradients of group normalization of images of up to three dimensions, by input, weight and
    bias."""
    rank = len(shape(arguments(node)["input"]))
    if rank >= MAX_RANK:
        return f"its input has rank {rank}, and split into groups one more than the NPU knows"
    return mistyped_statistics(node)


@rule("aten._softmax_backward_data.default", "aten._log_softmax_backward_data.default")
def softmax_backward(node: fx.Node) -> str | None:
    """Gradients of softmax and log_softmax over any dimension."""
    return one_number(node)
