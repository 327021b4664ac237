"""Comparisons, and what is chosen by them."""

from __future__ import annotations

import torch
from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule(
    *(f"aten.{name}.Tensor" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(f"aten.{name}.Scalar" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
)
def compare(node: fx.Node) -> str | None:
    """Comparisons of floats, element by element, with broadcasting, or with a number."""
    other = arguments(node)["other"]
    return f"other={other} is complex" if isinstance(other, complex) else None


@rule("aten.where.self", "aten.masked_fill.Scalar")
def choose(node: fx.Node) -> str | None:
    """where and masked_fill with a number."""
    return _number_problem(node)


def _number_problem(node: fx.Node) -> str | None:
    """A kernel that chooses between elements and a number that another one has computed crashes."""
    for operand in node.all_input_nodes if shape(node) else ():
        if operand.op != "get_attr" and not shape(operand):
            return f"operand {operand.name} has no dimensions"
    return None


@rule(
    "aten.maximum.default",
    "aten.minimum.default",
    "aten.clamp.Tensor",
    "aten.clamp_min.Tensor",
    "aten.clamp_max.Tensor",
)
def extreme_of_two(node: fx.Node) -> str | None:
    """maximum, minimum and clamp of tensors; NaN wins, as in eager."""
    return _number_problem(node)


@rule("aten.sign.default", "aten.sgn.default")
def sign(node: fx.Node) -> str | None:
    """sign and sgn."""
    return None


@rule(
    *(f"aten.logical_{name}.default" for name in ("and", "or", "xor", "not")),
    *(f"aten.bitwise_{name}.Tensor" for name in ("and", "or", "xor")),
    "aten.bitwise_not.default",
)
def logic(node: fx.Node) -> str | None:
    """and, or, xor and not of booleans."""
    if any(x.meta["val"].dtype is not torch.bool for x in node.all_input_nodes):
        return "its operands are not booleans"
    return None
