"""Lane-wise nests: all operands are read along one vector dimension.

Large windows, reductions over outer dimensions, elementwise ops, fills and copies:

    for outer dims: for pixel tile: for lane tile:
        accumulators = start
        for reduction (small ones unrolled):  accumulators = combine(operands, accumulators)
        finish(accumulators)

A tile has several pixels when the lane dimension is short. What is left of the lanes is done with
narrower vectors, down to one element.

Rounding errors of a sum grow with the number of its terms, so long sums of floats are sums of
partial sums, and these of others, each of a few dozen terms.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.passes.analysis.loop_nest import Dim, unit_dim
from mlir_npu.passes.analysis.register_tile import VectorUnit, split, vector_pieces
from mlir_npu.passes.microkernels.arithmetic import add
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset, index_constant, loop
from mlir_npu.passes.microkernels.nest import (
    Cursor,
    Lane,
    Tile,
    advance,
    extent_of,
    for_each,
    for_span,
    lanes_along,
    start_of,
)
from mlir_npu.passes.microkernels.region import splat_constant

# Reductions of at most this many elements are unrolled, times pixels and vectors.
UNROLLED_CELLS = 128
# Vectors of one pixel per iteration; more only makes the code longer.
TILE_VECTORS = 4
# About as many terms are added up one after the other.
PARTIAL_TERMS = 64


class Cells(Protocol):
    """What happens to one vector of the output before and after its reduction."""

    def start(self, tile: Tile, lane: Lane) -> ir.Value | None: ...

    def finish(self, tile: Tile, lane: Lane, value: ir.Value | None) -> None: ...


Combine = Callable[[Tile, Lane, ir.Value], ir.Value]


@dataclass(frozen=True)
class Lanewise:
    """Loops outermost first. sums: `combine` adds a float to the value."""

    operands: tuple[Operand, ...]
    pixels: tuple[Dim, ...]
    lanes: Dim
    cells: Cells
    reduction: tuple[Dim, ...] = ()
    combine: Combine | None = None
    sums: bool = False


def emit_lanewise(nest: Lanewise, unit: VectorUnit) -> None:
    """Emit the loops at the insertion point."""
    none = unit_dim(len(nest.operands))
    *outer, columns = [none, *nest.pixels]
    if columns.symbol is not None:
        outer, columns = [*outer, columns], none
    vectors, pixels = _tile_shape(nest, columns, unit)

    def row(cursor: Cursor) -> None:
        for span in split(columns.extent, pixels):
            bases = [tuple(p * s for s in columns.strides) for p in range(span.size)]
            for_span(
                span, columns, cursor, lambda c, b=bases: emit_lanes(nest, b, vectors, c, unit)
            )

    for_each(outer, start_of(nest.operands), row)


def _tile_shape(nest: Lanewise, columns: Dim, unit: VectorUnit) -> tuple[int, int]:
    """Vectors and pixels of a tile; half the registers hold accumulators."""
    budget = unit.registers // 2
    full = max(1, nest.lanes.extent // unit.lanes)
    vectors = min(full, TILE_VECTORS, budget)
    limit = max(1, TILE_VECTORS // vectors)
    tiles = -(-columns.extent // limit)
    return vectors, -(-columns.extent // tiles)


def emit_lanes(
    nest: Lanewise, bases: Sequence[tuple[int, ...]], vectors: int, cursor: Cursor, unit: VectorUnit
) -> None:
    """All lanes of the pixels at `bases`, `vectors` at a time."""
    dim, step = nest.lanes, vectors * unit.lanes
    if dim.symbol is not None:
        _emit_dynamic_lanes(nest, bases, step, cursor, unit)
        return
    for span in split(dim.extent, step):
        pieces = vector_pieces(span.size, unit.lanes)
        for_span(span, dim, cursor, lambda c, p=pieces: _emit_tile(nest, bases, p, c))


def _emit_dynamic_lanes(
    nest: Lanewise, bases: Sequence[tuple[int, ...]], step: int, cursor: Cursor, unit: VectorUnit
) -> None:
    """Full tiles as long as they fit, then single vectors, then single elements."""
    extent = extent_of(nest.lanes)
    lower = Offset()
    for size in dict.fromkeys((step, unit.lanes, 1)):
        pieces = vector_pieces(size, unit.lanes)

        def iteration(counter: Offset, _: list[ir.Value], pieces=pieces) -> list[ir.Value]:
            _emit_tile(nest, bases, pieces, advance(cursor, nest.lanes, counter))
            return []

        if nest.lanes.extent % size == 0:
            loop(lower, extent, size, iteration)
            return
        whole = extent.materialise()
        rest = arith.RemUIOp(whole, index_constant(size)).result
        upper = Offset(arith.SubIOp(whole, rest).result)
        loop(lower, upper, size, iteration)
        lower = upper


def _emit_tile(
    nest: Lanewise, bases: Sequence[tuple[int, ...]], pieces: Sequence[int], cursor: Cursor
) -> None:
    tile = Tile(nest.operands, nest.lanes.strides, cursor)
    cells = [lane for base in bases for lane in lanes_along(nest.lanes, pieces, base)]
    values = [nest.cells.start(tile, cell) for cell in cells]
    if nest.combine is not None:
        values = _reduce(nest, cells, tile, list(nest.reduction), values)
        tile = tile.at(cursor)
    for cell, value in zip(cells, values, strict=True):
        nest.cells.finish(tile, cell, value)


def _reduce(
    nest: Lanewise, cells: list[Lane], tile: Tile, dims: list[Dim], values: list[ir.Value]
) -> list[ir.Value]:
    if prod(d.extent for d in dims) * len(cells) <= UNROLLED_CELLS or not dims:
        return _unrolled(nest, cells, tile, dims, values)
    dim, *inner = dims

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        return _reduce(nest, cells, tile.at(advance(tile.cursor, dim, counter)), inner, carried)

    if not nest.sums:
        return loop(0, dim.extent, 1, iteration, values)
    unit = max(1, PARTIAL_TERMS // prod(d.extent for d in inner))
    return _add_up(Offset(), dim.extent, unit, iteration, values)


def _add_up(
    start: Offset,
    count: int,
    unit: int,
    iteration: Callable[[Offset, list[ir.Value]], Sequence[ir.Value]],
    values: list[ir.Value],
) -> list[ir.Value]:
    """`count` iterations from `start`; `unit` of them make the shortest partial sum."""
    if count <= unit:
        return loop(0, count, 1, lambda step, sums: iteration(start + step, sums), values)
    size = unit
    while size * PARTIAL_TERMS < count:
        size *= PARTIAL_TERMS

    def part(size: int, counter: Offset, carried: list[ir.Value]) -> list[ir.Value]:
        sums = _add_up(start + counter, size, unit, iteration, [_zeros(v) for v in carried])
        return [add(value, sum_) for value, sum_ in zip(carried, sums, strict=True)]

    rest = count % size
    values = loop(0, count - rest, size, functools.partial(part, size), values)
    return part(rest, Offset(None, count - rest), values) if rest else values


def _zeros(like: ir.Value) -> ir.Value:
    type_ = ir.VectorType(like.type)
    return splat_constant(ir.FloatAttr.get(type_.element_type, 0.0), type_.shape[0])


def _unrolled(
    nest: Lanewise, cells: list[Lane], tile: Tile, dims: list[Dim], values: list[ir.Value]
) -> list[ir.Value]:
    for counters in itertools.product(*(range(d.extent) for d in dims)):
        moved = [0] * len(nest.operands)
        for counter, dim in zip(counters, dims, strict=True):
            moved = [m + counter * s for m, s in zip(moved, dim.strides, strict=True)]
        values = [
            nest.combine(tile, Lane(tuple(o + m for o, m in zip(c.offsets, moved)), c.width), value)
            for c, value in zip(cells, values, strict=True)
        ]
    return values


@dataclass(frozen=True)
class Elementwise:
    """Cells without a reduction: a function of inputs, given by their index in the nest."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    compute: Callable[[list[ir.Value], int], Sequence[ir.Value]]

    def start(self, tile: Tile, lane: Lane) -> None:
        return None

    def finish(self, tile: Tile, lane: Lane, value: None) -> None:
        inputs = [tile.load(i, lane.offsets[i], lane.width) for i in self.inputs]
        for index, result in zip(self.outputs, self.compute(inputs, lane.width), strict=True):
            tile.store(index, lane.offsets[index], result)
