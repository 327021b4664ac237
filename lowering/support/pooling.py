"""Pooling windows over the last two dimensions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, pair, rule, shape, used_outputs

MAX_WINDOWS = 32  # that are made one by one along a dimension


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


@rule(
    "aten._adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool3d.default",
)
def adaptive_avg_pool(node: fx.Node) -> str | None:
    """Adaptive 2-D and 3-D average pooling, of up to 32 windows along a dimension if these differ
    in size."""
    rank = 3 if "3d" in str(node.target) else 2
    out = pair(arguments(node)["output_size"], rank)
    return adaptive_problem(shape(arguments(node)["self"]), out, rank)


@rule("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(node: fx.Node) -> str | None:
    """Adaptive 2-D and 3-D max pooling whose output size divides the input size, when the indices
    are not used."""
    if used_outputs(node) - {0}:
        return "its indices are used, and the NPU makes the maxima only"
    rank = 3 if "3d" in str(node.target) else 2
    size, out = shape(arguments(node)["self"]), pair(arguments(node)["output_size"], rank)
    if any(extent % count for extent, count in zip(size[-rank:], out, strict=True)):
        return f"its windows, of {_by(size[-rank:])} to {_by(out)}, differ in size"
    return _has_batch(size, rank)


def adaptive_problem(size: tuple[int, ...], out: tuple[int, ...], rank: int) -> str | None:
    """Why averages over these windows are not for the NPU."""
    for extent, count in zip(size[-rank:], out[-rank:], strict=True):
        if extent % count and count > MAX_WINDOWS:
            return f"{count} windows of a dimension of {extent} differ in size, over {MAX_WINDOWS}"
    return _has_batch(size, rank)


def _has_batch(size: tuple[int, ...], rank: int) -> str | None:
    if len(size) != rank + 2:
        return f"its input has rank {len(size)}, and the NPU pools batches of rank {rank + 2}"
    return None


def _by(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


def batched(node: fx.Node) -> str | None:
    """Why the input of a 2-D pooling, or of its gradient, is no batch of images."""
    rank = len(shape(arguments(node)["self"]))
    if rank != 4:
        return f"its input has rank {rank}, and the NPU pools batched images of rank 4"
    return None
