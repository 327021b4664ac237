"""Reductions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("aten.amax.default", "aten.amin.default")
def extreme(node: fx.Node) -> str | None:
    """amax and amin over given dimensions that keep at least one dimension; NaN wins, as in
    eager."""
    return _kept(node, arguments(node)["dim"])


@rule("aten.linalg_vector_norm.default")
def norm(node: fx.Node) -> str | None:
    """The Euclidean norm over given dimensions that keep at least one dimension."""
    call = arguments(node)
    if call["ord"] != 2:
        return f"ord={call['ord']} is not the Euclidean norm"
    return _kept(node, call["dim"])


@rule("aten.mean.dim", "aten.sum.dim_IntList")
def mean(node: fx.Node) -> str | None:
    """mean and sum over given dimensions that keep at least one dimension, such as the two spatial
    ones of an image."""
    return _kept(node, arguments(node)["dim"])


def _kept(node: fx.Node, dims: list[int] | None) -> str | None:
    rank = len(shape(arguments(node)["self"]))
    if not dims or len({dim % rank for dim in dims}) == rank:
        return f"it reduces all {rank} dimensions to one number"
    return None
