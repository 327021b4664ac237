"""Arithmetic on two tensors, or a tensor and a number."""

from __future__ import annotations

import torch
from torch import fx

from mlir_npu.lowering.support.rules import arguments, result, rule


@rule(
    "aten.add.Tensor",
    "aten.add.Scalar",
    "aten.sub.Tensor",
    "aten.sub.Scalar",
    "aten.rsub.Scalar",
    "aten.rsub.Tensor",
    "aten.mul.Tensor",
    "aten.mul.Scalar",
    "aten.div.Tensor",
    "aten.div.Scalar",
)
def arithmetic(node: fx.Node) -> str | None:
    """add, sub, mul and div of tensors of floats with broadcasting (per channel included), or of a
    tensor and a number; `alpha` too."""
    call = arguments(node)
    for name in ("other", "alpha"):
        value = call.get(name)
        if isinstance(value, fx.Node) or value is None:
            continue
        if isinstance(value, complex):
            return f"{name}={value} is complex"
    if result(node).dtype is torch.bool:
        return "it computes with booleans"
    return None


@rule("aten.addcmul.default", "aten.addcdiv.default", "aten.lerp.Scalar")
def combine(node: fx.Node) -> str | None:
    """addcmul, addcdiv, and lerp by a number."""
    return None


@rule("aten._to_copy.default")
def convert(node: fx.Node) -> str | None:
    """Conversions between float32, bfloat16 and float16, and of booleans to these."""
    call = arguments(node)
    if result(node).dtype is torch.bool:
        return "it makes booleans"
    if call["memory_format"] not in (None, torch.preserve_format):
        return f"it asks for {call['memory_format']}"
    return None


@rule(
    "aten.neg.default",
    "aten.abs.default",
    "aten.exp.default",
    "aten.sqrt.default",
    "aten.rsqrt.default",
    "aten.reciprocal.default",
    "aten.log.default",
    "aten.log1p.default",
    "aten.expm1.default",
    "aten.erf.default",
)
def unary(node: fx.Node) -> str | None:
    """neg, abs, exp, expm1, log, log1p, sqrt, rsqrt, reciprocal and erf."""
    return None


POWERS = (1, 2, 3, 0.5, -0.5, -1, -2)


@rule("aten.pow.Tensor_Scalar")
def power(node: fx.Node) -> str | None:
    """First to third powers, square roots and their reciprocals, written as powers."""
    exponent = arguments(node)["exponent"]
    if exponent not in POWERS:
        return f"exponent {exponent} is none of {', '.join(map(str, POWERS))}"
    if result(node).dtype is torch.float16 and exponent in (0.5, -0.5):
        return "powers are no square roots for float16 in eager: -0 and -inf differ"
    return None
