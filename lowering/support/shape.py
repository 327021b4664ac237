"""Ops that only rename or move elements."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


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


@rule("aten.pixel_shuffle.default", "aten.pixel_unshuffle.default")
def shuffle(node: fx.Node) -> str | None:
    """pixel_shuffle and pixel_unshuffle of batched images."""
    rank = len(shape(node))
    return None if rank == 4 else f"its image has rank {rank}, and the NPU shuffles batches"


@rule("aten.im2col.default", "aten.col2im.default")
def patches(node: fx.Node) -> str | None:
    """unfold and fold of batched images in patches that touch and do not overlap."""
    call = arguments(node)
    window, size = call["kernel_size"], call.get("output_size") or shape(call["self"])[-2:]
    if list(call["stride"]) != list(window) or any(call["padding"]) or set(call["dilation"]) != {1}:
        return "its patches overlap, are apart, or reach into padding"
    if any(extent % part for extent, part in zip(size, window, strict=True)):
        return f"patches of {list(window)} do not fill the image of {list(size)}"
    rank = len(shape(call["self"]))
    return None if rank - 3 == ("im2col" in str(node.target)) else "its image has no batch"


@rule("aten.unbind.int")
def unbind(node: fx.Node) -> str | None:
    """unbind along any dimension."""
    return None


@rule("aten.roll.default")
def roll(node: fx.Node) -> str | None:
    """roll along given dimensions."""
    return None if arguments(node)["dims"] else "it rolls the elements of all dimensions as one"


@rule("aten.split.Tensor", "aten.split_with_sizes.default")
def split(node: fx.Node) -> str | None:
    """split and chunk with constant sizes."""
    if any(0 in value.shape for value in node.meta["val"]):
        return f"a piece has no elements: {[list(value.shape) for value in node.meta['val']]}"
    return None
