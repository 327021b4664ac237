"""Activation functions of one tensor."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule


@rule(
    "aten.relu.default",
    "aten.leaky_relu.default",
    "aten.sigmoid.default",
    "aten.tanh.default",
    "aten.silu.default",
    "aten.hardswish.default",
    "aten.hardsigmoid.default",
    "aten.softplus.default",
    "aten.mish.default",
)
def activation(node: fx.Node) -> str | None:
    """relu, leaky_relu, sigmoid, tanh, silu, hardswish, hardsigmoid, softplus and mish of any
    shape. NaN and infinities come out as in eager."""
    return None


@rule("aten.elu.default")
def elu(node: fx.Node) -> str | None:
    """elu, selu and celu with a positive scale of the input."""
    scale = arguments(node)["input_scale"]
    return None if scale > 0 else f"input_scale={scale} is not positive"


@rule("aten.celu.default")
def celu(node: fx.Node) -> str | None:
    """celu."""
    return None


@rule("aten.threshold.default")
def threshold(node: fx.Node) -> str | None:
    """threshold by a number."""
    return None


@rule("aten.glu.default")
def glu(node: fx.Node) -> str | None:
    """glu over any dimension."""
    return None


@rule("aten.log_sigmoid_forward.default")
def log_sigmoid(node: fx.Node) -> str | None:
    """logsigmoid."""
    return None


@rule("aten.gelu.default")
def gelu(node: fx.Node) -> str | None:
    """gelu, exact (erf) and approximate="tanh"."""
    approximate = arguments(node)["approximate"]
    if approximate not in ("none", "tanh"):
        return f'approximate="{approximate}" is neither "none" nor "tanh"'
    return None


@rule(
    "aten.clamp.default",
    "aten.clamp_min.default",
    "aten.clamp_max.default",
    "aten.hardtanh.default",
)
def clamp(node: fx.Node) -> str | None:
    """clamp, relu6 and hardtanh with numbers as bounds, either of which may be missing."""
    call = arguments(node)
    bounds = [call.get(name) for name in ("min", "max", "min_val", "max_val")]
    if any(isinstance(bound, fx.Node) for bound in bounds):
        return "a bound is computed at run time"
    if any(bound is not None and bound != bound for bound in bounds):
        return "a bound is NaN"
    return None


@rule("aten._prelu_kernel.default", "aten.prelu.default")
def prelu(node: fx.Node) -> str | None:
    """prelu with one weight, or one per channel."""
    return None
