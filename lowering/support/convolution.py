"""Convolutions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("aten.convolution.default")
def convolution(node: fx.Node) -> str | None:
    """1-D, 2-D and 3-D convolution, and transposed in 1-D and 2-D, with or without bias, any
    stride, padding, dilation and groups (depthwise with and without channel multiplier
    included)."""
    return _problem(node, (1, 2) if arguments(node)["transposed"] else (1, 2, 3))


@rule("aten.convolution_backward.default")
def convolution_backward(node: fx.Node) -> str | None:
    """Gradients of 1-D and 2-D convolutions, plain and transposed, by input, weight and bias, in
    any combination."""
    return _problem(node, (1, 2))


def _problem(node: fx.Node, known: tuple[int, ...]) -> str | None:
    call = arguments(node)
    spatial = len(shape(call["input"])) - 2
    if spatial not in known:
        kind = "transposed convolution" if call["transposed"] else "convolution"
        return f"it is a {spatial}-D {kind}, and the NPU has {_listed(known)} ones"
    if min(call["padding"]) < 0:
        return f"padding {list(call['padding'])} is negative"
    return None


def _listed(dimensions: tuple[int, ...]) -> str:
    return " and ".join(f"{count}-D" for count in dimensions)
