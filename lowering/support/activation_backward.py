"""Gradients of activation functions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule


@rule(
    "aten.threshold_backward.default",
    "aten.hardtanh_backward.default",
    "aten.leaky_relu_backward.default",
    "aten.hardswish_backward.default",
    "aten.hardsigmoid_backward.default",
    "aten.sigmoid_backward.default",
    "aten.tanh_backward.default",
    "aten.silu_backward.default",
    "aten.softplus_backward.default",
    "aten.mish_backward.default",
    "aten._prelu_kernel_backward.default",
    "aten.glu_backward.default",
    "aten.log_sigmoid_backward.default",
)
def activation_backward(node: fx.Node) -> str | None:
    """Gradients of relu, relu6, hardtanh, leaky_relu, hardswish, hardsigmoid, sigmoid, tanh, silu,
    softplus, mish, prelu, glu and logsigmoid."""
    return None


@rule("aten.gelu_backward.default")
def gelu_backward(node: fx.Node) -> str | None:
    """Gradient of gelu, exact (erf) and approximate="tanh"."""
    approximate = arguments(node)["approximate"]
    if approximate not in ("none", "tanh"):
        return f'approximate="{approximate}" is neither "none" nor "tanh"'
    return None


@rule("aten.elu_backward.default")
def elu_backward(node: fx.Node) -> str | None:
    """Gradients of elu, selu and celu."""
    return None


@rule("aten.native_dropout_backward.default")
def dropout_backward(node: fx.Node) -> str | None:
    """Gradient of dropout: the mask is drawn on the host, in the forward."""
    return None
