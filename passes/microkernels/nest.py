"""A loop nest over several operands at once: where each operand stands, and cells of one vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.analysis.register_tile import Span
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset, loop
from mlir_npu.passes.microkernels.lanes import load_lanes, load_scalar, prefetch, store_lanes

# Element offset of every operand of a nest.
Cursor = tuple[Offset, ...]


def start_of(operands: Sequence[Operand]) -> Cursor:
    return tuple(Offset(None, operand.start) for operand in operands)


def advance(cursor: Cursor, dim: Dim, count: Offset | int) -> Cursor:
    """Where the operands stand `count` iterations of `dim` further on."""
    count = Offset(None, count) if isinstance(count, int) else count
    return tuple(
        place + count.times(stride) for place, stride in zip(cursor, dim.strides, strict=True)
    )


def extent_of(dim: Dim) -> Offset:
    if dim.symbol is None:
        return Offset(None, dim.extent)
    return Offset(dim.symbol).times(dim.extent)


def for_each(dims: Sequence[Dim], cursor: Cursor, body: Callable[[Cursor], None]) -> None:
    """Loops over `dims`, outermost first, around `body(cursor)`."""
    if not dims:
        body(cursor)
        return

    def iteration(counter: Offset, _: list[ir.Value]) -> list[ir.Value]:
        for_each(dims[1:], advance(cursor, dims[0], counter), body)
        return []

    loop(0, extent_of(dims[0]), 1, iteration)


def for_span(span: Span, dim: Dim, cursor: Cursor, body: Callable[[Cursor], None]) -> None:
    """A loop over the tiles of `span` along `dim`."""

    def iteration(counter: Offset, _: list[ir.Value]) -> list[ir.Value]:
        body(advance(cursor, dim, counter))
        return []

    loop(span.start, span.start + span.count * span.size, span.size, iteration)


@dataclass(frozen=True)
class Lane:
    """One vector of a tile: constant element offsets from the tile's cursor, and its width."""

    offsets: tuple[int, ...]
    width: int


def lanes_along(dim: Dim, pieces: Sequence[int], base: Sequence[int]) -> list[Lane]:
    """Vectors of `pieces` elements one after the other along `dim`."""
    lanes, start = [], 0
    for width in pieces:
        offsets = tuple(b + start * s for b, s in zip(base, dim.strides, strict=True))
        lanes.append(Lane(offsets, width))
        start += width
    return lanes


class Tile:
    """Access to the operands at a cursor; loads of one address are emitted once.

    A tile lives in one block of the IR. Nothing that it caches may be stored to while it lives.
    """

    def __init__(self, operands: Sequence[Operand], lane_strides: Sequence[int], cursor: Cursor):
        self.operands = operands
        self.lane_strides = lane_strides
        self.cursor = cursor
        self._loaded: dict[tuple, ir.Value] = {}

    def at(self, cursor: Cursor) -> Tile:
        return Tile(self.operands, self.lane_strides, cursor)

    def load(self, index: int, offset: int, width: int) -> ir.Value:
        key = (index, offset, width)
        if key not in self._loaded:
            self._loaded[key] = load_lanes(
                self.operands[index], self.cursor[index] + offset, self.lane_strides[index], width
            )
        return self._loaded[key]

    def load_scalar(self, index: int, offset: int) -> ir.Value:
        return load_scalar(self.operands[index], self.cursor[index] + offset)

    def store(self, index: int, offset: int, value: ir.Value) -> None:
        store_lanes(
            value, self.operands[index], self.cursor[index] + offset, self.lane_strides[index]
        )

    def prefetch(self, index: int, offset: int) -> None:
        prefetch(self.operands[index], self.cursor[index] + offset)
