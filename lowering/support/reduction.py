"""Reductions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("aten.mean.dim", "aten.sum.dim_IntList")
def mean(node: fx.Node) -> str | None:
    """mean and sum over given dimensions that keep at least one dimension, such as the two spatial
    ones of an image."""
    call = arguments(node)
    rank = len(shape(call["self"]))
    if not call["dim"] or len({dim % rank for dim in call["dim"]}) == rank:
        return f"it reduces all {rank} dimensions to one number"
    return None
