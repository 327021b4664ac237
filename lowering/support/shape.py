"""Ops that only rename or move elements."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import rule


@rule(
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.reshape.default",
    "aten.flatten.using_ints",
    "aten.unsqueeze.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.permute.default",
    "aten.transpose.int",
    "aten.t.default",
)
def reshape(node: fx.Node) -> str | None:
    """view, reshape, flatten, unsqueeze, squeeze, permute, transpose and t."""
    return None


@rule(
    "aten.alias.default",
    "aten.detach.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.lift_fresh_copy.default",
    "aten.lift_fresh.default",
)
def no_op(node: fx.Node) -> str | None:
    """alias, detach, clone, contiguous and lift_fresh: the value is the same, its memory the
    compiler's choice."""
    return None


@rule("aten.expand.default", "aten.repeat.default")
def expand(node: fx.Node) -> str | None:
    """expand and repeat by constant counts."""
    return None


@rule("aten.slice.Tensor", "aten.select.int")
def take(node: fx.Node) -> str | None:
    """slice and select with constant bounds."""
    return None


@rule("aten.split.Tensor", "aten.split_with_sizes.default")
def split(node: fx.Node) -> str | None:
    """split and chunk with constant sizes."""
    if any(0 in value.shape for value in node.meta["val"]):
        return f"a piece has no elements: {[list(value.shape) for value in node.meta['val']]}"
    return None
