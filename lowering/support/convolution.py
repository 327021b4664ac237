"""Convolutions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule


@rule("aten.convolution.default")
def convolution(node: fx.Node) -> str | None:
    """1-D, 2-D and 3-D convolution, plain and transposed, with or without bias, any stride,
    padding, dilation and groups (depthwise with and without channel multiplier included)."""
    return _problem(node)


@rule("aten.convolution_backward.default")
def convolution_backward(node: fx.Node) -> str | None:
    """Gradients of 1-D, 2-D and 3-D convolutions, plain and transposed, by input, weight and bias,
    in any combination."""
    return _problem(node)


def _problem(node: fx.Node) -> str | None:
    call = arguments(node)
    if min(call["padding"]) < 0:
        return f"padding {list(call['padding'])} is negative"
    return None
