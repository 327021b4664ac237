"""Gradients of pooling over the last two dimensions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering import max_pool_gradient  # noqa: F401  (registers the operator)
from mlir_npu.lowering.support.pooling import batched
from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("mlir_npu.max_pool2d_backward.default")
def max_pool_backward(node: fx.Node) -> str | None:
    """Gradient of 2-D max pooling, with any window, stride, padding, dilation and ceil_mode."""
    return None


@rule("aten.avg_pool2d_backward.default")
def avg_pool_backward(node: fx.Node) -> str | None:
    """Gradient of 2-D average pooling, with any window, stride, padding, ceil_mode,
    count_include_pad and divisor_override."""
    return batched(node)


@rule("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(node: fx.Node) -> str | None:
    """Gradient of adaptive 2-D average pooling whose output size divides the input size."""
    call = arguments(node)
    size, out = shape(call["self"])[-2:], shape(call["grad_output"])[-2:]
    if any(extent % count for extent, count in zip(size, out, strict=True)):
        return f"its windows, of {size[0]}x{size[1]} to {out[0]}x{out[1]}, differ in size"
    return batched(node)
