"""Ops that build a larger tensor out of tensors or of a tensor and a border."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule


@rule("aten.cat.default")
def concatenate(node: fx.Node) -> str | None:
    """cat of tensors of equal rank along any dimension."""
    return None


@rule("aten.slice_scatter.default", "aten.select_scatter.default")
def overwrite(node: fx.Node) -> str | None:
    """A tensor with a slice or a position of one dimension replaced (circular padding)."""
    step = arguments(node).get("step", 1)
    return None if step == 1 else f"it replaces elements that are {step} apart"


@rule("aten.copy.default")
def copy(node: fx.Node) -> str | None:
    """A copy of a tensor in the shape of another."""
    return None


@rule("aten.stack.default")
def stack(node: fx.Node) -> str | None:
    """stack of tensors along a new dimension."""
    return None


@rule("aten.constant_pad_nd.default")
def pad(node: fx.Node) -> str | None:
    """Constant padding, any value, any dimensions; negative padding crops."""
    call = arguments(node)
    if isinstance(call["value"], (fx.Node, complex)):
        return f"padding value {call['value']} is not a real number known at compile time"
    return None


@rule("aten.slice_backward.default", "aten.select_backward.default")
def take_backward(node: fx.Node) -> str | None:
    """Gradients of slice and select: zeros around, and between, what was taken."""
    return None
