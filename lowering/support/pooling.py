"""Pooling windows over the last two dimensions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, pair, rule, shape, used_outputs


@rule("aten.max_pool2d_with_indices.default")
def max_pool(node: fx.Node) -> str | None:
    """2-D max pooling, any window, stride, padding, dilation and ceil_mode, when the indices are
    not used (training needs them for the backward)."""
    used = used_outputs(node) - {0}
    if used:
        return "its indices are used, and the NPU makes the maxima only"
    return batched(node)


@rule("aten.avg_pool2d.default")
def avg_pool(node: fx.Node) -> str | None:
    """2-D average pooling, with any window, stride, padding, ceil_mode, count_include_pad and
    divisor_override."""
    return batched(node)


@rule("aten._adaptive_avg_pool2d.default", "aten.adaptive_avg_pool2d.default")
def adaptive_avg_pool(node: fx.Node) -> str | None:
    """Adaptive 2-D average pooling whose output size divides the input size, so that all windows
    are equal."""
    size = shape(arguments(node)["self"])[-2:]
    out = pair(arguments(node)["output_size"])
    if any(extent % count for extent, count in zip(size, out, strict=True)):
        sizes = f"output {out[0]}x{out[1]} does not divide the input {size[0]}x{size[1]}"
        return f"{sizes}, so windows differ in size"
    return batched(node)


def batched(node: fx.Node) -> str | None:
    """Why the input of a 2-D pooling, or of its gradient, is no batch of images."""
    rank = len(shape(arguments(node)["self"]))
    if rank != 4:
        return f"its input has rank {rank}, and the NPU pools batched images of rank 4"
    return None
