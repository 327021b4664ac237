"""Elements at known positions, which interpolation and padding by repetition are made of."""

from __future__ import annotations

import operator

import torch
from torch import fx

from mlir_npu.lowering.decompose_gather import (
    index_positions,
    padded_positions,
    pieces,
    reflected,
    replicated,
)
from mlir_npu.lowering.support.rules import arguments, rule, shape

MAX_PIECES = 32  # slices that are joined along a dimension


@rule("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(node: fx.Node) -> str | None:
    """Indexing by constant positions in one or more dimensions (nearest and bilinear
    interpolation), if up to 32 slices hold them all."""
    call = arguments(node)
    sizes = shape(call["self"])
    named = [(dim, index) for dim, index in enumerate(call["indices"]) if index is not None]
    for dim, position in named:
        value = constant_of(position)
        if value is None:
            return f"its positions {position.name} are computed at run time"
        if value.dtype not in (torch.int64, torch.int32):
            return f"its positions {position.name} are {value.dtype}, not integers"
        if not _is_axis(value, [d for d, _ in named].index(dim), len(named)):
            return f"its positions {position.name} of shape {list(value.shape)} span no grid"
        if problem := _pattern_problem(sizes[dim], index_positions(value, sizes[dim])):
            return problem
    dims = [dim for dim, _ in named]
    if dims != list(range(dims[0], dims[0] + len(dims))):
        return f"it names positions in dimensions {dims}, which are not neighbours"
    return None


@rule("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(node: fx.Node) -> str | None:
    """Sums at constant positions in one or more dimensions (gradients of interpolation), if up to
    32 slices hold them all."""
    call = arguments(node)
    if not call["accumulate"]:
        return "it replaces elements"
    if problem := index(node):
        return problem
    sizes = list(shape(call["self"]))
    for dim, position in enumerate(call["indices"]):
        sizes[dim] = constant_of(position).numel() if position is not None else sizes[dim]
    values = shape(call["values"])
    return None if list(values) == sizes else f"its values, of {list(values)}, are broadcast"


@rule("aten.index_select.default")
def index_select(node: fx.Node) -> str | None:
    """index_select by constant positions, if up to 32 slices hold them all."""
    call = arguments(node)
    value = constant_of(call["index"])
    if value is None:
        return f"its positions {call['index'].name} are computed at run time"
    if not shape(call["self"]):
        return "a number has no dimension to select along"
    extent = shape(call["self"])[call["dim"]]
    return _pattern_problem(extent, index_positions(value, extent))


@rule(
    "aten.reflection_pad1d.default",
    "aten.reflection_pad2d.default",
    "aten.reflection_pad3d.default",
    "aten.reflection_pad1d_backward.default",
    "aten.reflection_pad2d_backward.default",
    "aten.reflection_pad3d_backward.default",
)
def reflection_pad(node: fx.Node) -> str | None:
    """Padding by reflection, up to 32 elements in all along a dimension, and its gradient."""
    return _padding_problem(node, reflected)


@rule(
    "aten.replication_pad1d.default",
    "aten.replication_pad2d.default",
    "aten.replication_pad3d.default",
    "aten.replication_pad1d_backward.default",
    "aten.replication_pad2d_backward.default",
    "aten.replication_pad3d_backward.default",
)
def replication_pad(node: fx.Node) -> str | None:
    """Padding by repetition of the border, and its gradient."""
    return _padding_problem(node, replicated)


def constant_of(node: fx.Node) -> torch.Tensor | None:
    """The tensor that a node stands for, if it is a constant of the graph."""
    if node.op != "get_attr":
        return None
    value = operator.attrgetter(node.target)(node.graph.owning_module)
    return value if isinstance(value, torch.Tensor) else None


def _is_axis(value: torch.Tensor, place: int, count: int) -> bool:
    """Whether an index is axis `place` of a grid with `count` axes, once shapes are broadcast."""
    rank = value.dim()
    if rank > count or (place == 0 and rank != count):
        return False
    return all(n == 1 or d + count - rank == place for d, n in enumerate(value.shape))


def _padding_problem(node: fx.Node, positions) -> str | None:
    call = arguments(node)
    if min(call["padding"]) < 0:
        return f"padding {list(call['padding'])} is negative, which crops"
    sizes = shape(call["self"])
    for dim, found in padded_positions(sizes, call["padding"], positions):
        if problem := _pattern_problem(sizes[dim], found):
            return problem
    return None


def _pattern_problem(extent: int, positions: list[int]) -> str | None:
    if not all(0 <= position < extent for position in positions):
        return f"a position is outside of the {extent} elements there are"
    count = len(pieces(positions))
    if count > MAX_PIECES:
        return f"its {len(positions)} positions are {count} slices, more than {MAX_PIECES}"
    return None
