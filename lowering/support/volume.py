"""Pooling windows over time, height and width."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape, used_outputs


@rule("aten.max_pool3d_with_indices.default")
def max_pool(node: fx.Node) -> str | None:
    """3-D max pooling, any window, stride, padding, dilation and ceil_mode, when the indices are
    not used (training needs them for the backward)."""
    if used_outputs(node) - {0}:
        return "its indices are used, and the NPU makes the maxima only"
    return _batched(node)


@rule("aten.avg_pool3d.default")
def avg_pool(node: fx.Node) -> str | None:
    """3-D average pooling, with any window, stride, padding, ceil_mode, count_include_pad and
    divisor_override."""
    return _batched(node)


@rule("aten.avg_pool3d_backward.default")
def avg_pool_backward(node: fx.Node) -> str | None:
    """Gradient of 3-D average pooling, with any window, stride, padding, ceil_mode,
    count_include_pad and divisor_override."""
    return _batched(node)


def _batched(node: fx.Node) -> str | None:
    rank = len(shape(arguments(node)["self"]))
    return None if rank == 5 else f"its input has rank {rank}, and the NPU pools batches of rank 5"
