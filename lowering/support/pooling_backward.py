"""Gradients of pooling over the last two dimensions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering import max_pool_gradient  # noqa: F401  (registers the operator)
from mlir_npu.lowering.support.pooling import adaptive_problem, batched
from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("mlir_npu.max_pool2d_backward.default", "mlir_npu.max_pool3d_backward.default")
def max_pool_backward(node: fx.Node) -> str | None:
    """Gradients of 2-D and 3-D max pooling, with any window, stride, padding, dilation and
    ceil_mode, and of adaptive max pooling whose output size divides the input size."""
    return None


@rule("aten.avg_pool2d_backward.default")
def avg_pool_backward(node: fx.Node) -> str | None:
    """Gradient of 2-D average pooling, with any window, stride, padding, ceil_mode,
    count_include_pad and divisor_override."""
    return batched(node)


@rule("aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(node: fx.Node) -> str | None:
    """Gradients of adaptive 2-D and 3-D average pooling, of up to 32 windows along a dimension if
    these differ in size."""
    call = arguments(node)
    size, out = shape(call["self"]), shape(call["grad_output"])
    return adaptive_problem(size, out, 3 if "3d" in str(node.target) else 2)
