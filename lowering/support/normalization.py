"""Normalizations, with running statistics or those of the input."""

from __future__ import annotations

import math

from torch import fx

from mlir_npu.lowering.half_statistics import mistyped_statistics
from mlir_npu.lowering.support.rules import (
    MAX_RANK,
    arguments,
    result,
    rule,
    shape,
    used_outputs,
)

_ALWAYS_EVALUATES = (
    "aten._native_batch_norm_legit_no_training.default",
    "aten._batch_norm_no_update.default",
)


@rule(
    "aten._native_batch_norm_legit_no_training.default",
    "aten._batch_norm_no_update.default",
    "aten.native_batch_norm.default",
    "aten._native_batch_norm_legit_functional.default",
)
def batch_norm(node: fx.Node) -> str | None:
    """Batch normalization in evaluation mode, with or without weight and bias, and in training mode
    (batch statistics) of at least two values per channel. Where evaluation returns saved statistics
    that are used, it runs on the host."""
    call = arguments(node)
    if str(node.target) not in _ALWAYS_EVALUATES and call["training"]:
        return _training_problem(node) or mistyped_statistics(node)
    if call["running_mean"] is None or call["running_var"] is None:
        return "it has no running statistics"
    if result(node).dim() < 2:
        return f"its input has rank {result(node).dim()}, and channels are dimension 1"
    used = used_outputs(node) - {0}
    if used:
        return f"its outputs {sorted(used)} are used, and the NPU makes output 0 only"
    return None


@rule("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_the_batch(node: fx.Node) -> str | None:
    """Batch normalization without running statistics, and instance normalization made of it."""
    return mistyped_statistics(node)


@rule("aten.native_layer_norm.default")
def layer_norm(node: fx.Node) -> str | None:
    """Layer normalization over any last dimensions, with or without weight and bias."""
    return mistyped_statistics(node)


@rule("aten.native_group_norm.default")
def group_norm(node: fx.Node) -> str | None:
    """Group normalization of images of up to three dimensions, with or without weight and bias."""
    rank = len(shape(node))
    if rank >= MAX_RANK:
        return f"its input has rank {rank}, and split into groups one more than the NPU knows"
    return mistyped_statistics(node)


def _training_problem(node: fx.Node) -> str | None:
    if str(node.target) != "aten._native_batch_norm_legit_functional.default":
        return "it normalizes with the statistics of the batch (training mode)"
    if arguments(node)["running_mean"] is None:
        return "it has no running statistics"
    sizes = shape(node)
    if math.prod(sizes) == sizes[1]:
        return "a batch of one value per channel has no variance"
    return None
