"""Batch normalization with running statistics."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, result, rule, used_outputs

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
    """Batch normalization in evaluation mode, with or without weight and bias. In training mode
    (batch statistics), or where the saved statistics hold values that are used, it runs on the
    host."""
    call = arguments(node)
    if str(node.target) not in _ALWAYS_EVALUATES and call["training"]:
        return "it normalizes with the statistics of the batch (training mode)"
    if call["running_mean"] is None or call["running_var"] is None:
        return "it has no running statistics"
    if result(node).dim() < 2:
        return f"its input has rank {result(node).dim()}, and channels are dimension 1"
    used = used_outputs(node) - {0}
    if used:
        return f"its outputs {sorted(used)} are used, and the NPU makes output 0 only"
    return None
