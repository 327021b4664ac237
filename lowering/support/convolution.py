"""Convolutions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("aten.convolution.default")
def convolution(node: fx.Node) -> str | None:
    """1-D and 2-D convolution, with or without bias, any stride, padding, dilation and groups
    (depthwise with and without channel multiplier included). Transposed and 3-D convolutions run on
    the host."""
    call = arguments(node)
    input_shape = shape(call["input"])
    spatial = len(input_shape) - 2
    if call["transposed"]:
        return "it is a transposed convolution, and the NPU convolves forward only"
    if spatial not in (1, 2):
        return f"it is a {spatial}-D convolution, and the NPU has 1-D and 2-D ones"
    if min(call["padding"]) < 0:
        return f"padding {list(call['padding'])} is negative"
    return None
