"""Reductions."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("aten.amax.default", "aten.amin.default")
def extreme(node: fx.Node) -> str | None:
    """amax and amin over any dimensions; NaN wins, as in eager."""
    return one_number(node)


@rule("aten.linalg_vector_norm.default")
def norm(node: fx.Node) -> str | None:
    """The Euclidean norm over any dimensions."""
    order = arguments(node)["ord"]
    return one_number(node) if order == 2 else f"ord={order} is not the Euclidean norm"


@rule("aten.mean.dim", "aten.sum.dim_IntList", "aten.mean.default", "aten.sum.default")
def mean(node: fx.Node) -> str | None:
    """mean and sum over any dimensions."""
    return one_number(node)


def one_number(node: fx.Node) -> str | None:
    return None if shape(node.args[0]) else "it reduces one number"
