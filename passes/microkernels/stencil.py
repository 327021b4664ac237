"""Small windows over an image, channel by channel, blocked in registers over rows and columns.

    for images: for pairs of rows:  for column tiles: for vectors of channels:
        accumulators of rows x columns = start
        every input of the tile is loaded once and combined into all windows that it is a tap of
        finish(accumulators)
    and row by row, the taps in a loop, where the pairs do not reach: at the border of the data

The border needs no padding around the image: taps that would meet it are left out. Along columns
that is known at compile time, the tiles at either end are code of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.analysis.register_tile import VectorUnit, split, vector_pieces
from mlir_npu.passes.microkernels.accumulation import Accumulation
from mlir_npu.passes.microkernels.axis import Axis
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset, floor_div, loop
from mlir_npu.passes.microkernels.nest import (
    Cursor,
    Lane,
    Tile,
    advance,
    for_each,
    for_span,
    lanes_along,
)

# Taps and multiply-adds of a tile that are worth unrolling.
UNROLLED_TAPS = 32
UNROLLED_CELLS = 144
TILE_ROWS = 2

Combine = Callable[[Tile, Lane, ir.Value], ir.Value]


@dataclass(frozen=True)
class Stencil:
    """Loops of windows (`images`, `rows`, `columns`, `lanes`) and of their taps.

    `vertical` and `horizontal` are the window along rows and columns; `horizontal` is static.
    """

    operands: tuple[Operand, ...]
    images: Dim
    rows: Dim
    columns: Dim
    lanes: Dim
    row_taps: Dim
    column_taps: Dim
    vertical: Axis
    horizontal: Axis
    accumulation: Accumulation
    combine: Combine


@dataclass(frozen=True)
class _Tap:
    """One combine step of a tile: window (`row`, `column`), tap (`down`, `right`)."""

    row: int
    column: int
    down: int
    right: int


def is_small(taps: Sequence[int]) -> bool:
    """Whether a window of `taps` rows and columns is one for `emit_stencil`."""
    return taps[0] * taps[1] <= UNROLLED_TAPS


def emit_stencil(stencil: Stencil, start: Cursor, unit: VectorUnit) -> None:
    """Emit the loops at the insertion point; `start`: where the first window reads and writes."""
    height, width = _tile_shape(stencil, unit)
    for_each(
        [stencil.images], start, lambda image: _emit_image(stencil, height, width, image, unit)
    )


def _tile_shape(stencil: Stencil, unit: VectorUnit) -> tuple[int, int]:
    """Rows and columns of a tile; at most half the registers hold accumulators."""
    taps = stencil.vertical.taps * stencil.horizontal.taps
    budget = max(1, min(unit.registers // 2, UNROLLED_CELLS // taps))
    height = TILE_ROWS if stencil.vertical.outputs >= TILE_ROWS <= budget // 2 else 1
    outputs, widest = stencil.columns.extent, budget // height
    # Tiles at both ends are code of their own; with more between them, wide ones only cost code.
    limit = widest if outputs <= 2 * widest else max(1, widest // 2)
    return height, -(-outputs // -(-outputs // limit))


def _emit_image(stencil: Stencil, height: int, width: int, image: Cursor, unit: VectorUnit) -> None:
    """Tiles of `height` rows as far as all of their taps meet data, then the rows around them."""
    first, end = stencil.vertical.inner()
    blocks = floor_div(end + first.times(-1), height)

    def block(counter: Offset, _: list[ir.Value]) -> list[ir.Value]:
        row = first + counter.times(height)
        cursor = advance(image, stencil.rows, row)
        _emit_columns(stencil, range(height), width, cursor, unit, None)
        return []

    def single(counter: Offset, _: list[ir.Value]) -> list[ir.Value]:
        row = _skip(counter, first, blocks.times(height))
        cursor = advance(image, stencil.rows, row)
        position = row.times(stencil.vertical.stride)
        taps = stencil.vertical.valid_taps(position, position)
        _emit_columns(stencil, range(1), width, cursor, unit, taps)
        return []

    loop(0, blocks, 1, block)
    loop(0, Offset(None, stencil.vertical.outputs) + blocks.times(-height), 1, single)


def _skip(counter: Offset, first: Offset, count: Offset) -> Offset:
    """`counter`, with `count` numbers from `first` on left out."""
    behind = counter + count
    if count.value is None and count.constant == 0:
        return counter
    if first.value is None and first.constant == 0:
        return behind
    values = [part.materialise() for part in (counter, first)]
    before = arith.CmpIOp(arith.CmpIPredicate.slt, *values).result
    return Offset(arith.SelectOp(before, values[0], behind.materialise()).result)


def _emit_columns(
    stencil: Stencil,
    rows: range,
    width: int,
    cursor: Cursor,
    unit: VectorUnit,
    taps: tuple[Offset, Offset] | None,
) -> None:
    """Tiles along a row; `taps`: the range of row taps where they are not all."""
    for span, valid in stencil.horizontal.spans(width):

        def tile(inner: Cursor, valid=valid) -> None:
            _emit_lanes(stencil, rows, valid, inner, unit, taps)

        for_span(span, stencil.columns, cursor, tile)


def _emit_lanes(
    stencil: Stencil,
    rows: range,
    valid: tuple[range, ...],
    cursor: Cursor,
    unit: VectorUnit,
    taps: tuple[Offset, Offset] | None,
) -> None:
    for span in split(stencil.lanes.extent, unit.lanes):
        pieces = lanes_along(
            stencil.lanes, vector_pieces(span.size, unit.lanes), (0,) * len(stencil.operands)
        )

        def vectors(inner: Cursor, pieces=pieces) -> None:
            for piece in pieces:
                _emit_tile(stencil, rows, valid, piece, inner, taps)

        for_span(span, stencil.lanes, cursor, vectors)


def _emit_tile(
    stencil: Stencil,
    rows: range,
    valid: tuple[range, ...],
    piece: Lane,
    cursor: Cursor,
    taps: tuple[Offset, Offset] | None,
) -> None:
    tile = Tile(stencil.operands, stencil.lanes.strides, cursor)
    cells = list(itertools.product(rows, range(len(valid))))
    lanes = [_moved(piece, (stencil.rows, r), (stencil.columns, c)) for r, c in cells]
    values = [stencil.accumulation.start(tile, lane) for lane in lanes]

    def combine(tile: Tile, down: range, values: Sequence[ir.Value]) -> list[ir.Value]:
        values = list(values)
        for step in _in_order_of_inputs(stencil, rows, valid, down):
            at = step.row * len(valid) + step.column
            shift = (stencil.row_taps, step.down), (stencil.column_taps, step.right)
            values[at] = stencil.combine(tile, _moved(lanes[at], *shift), values[at])
        return values

    def tap_row(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        moved = advance(cursor, stencil.row_taps, counter)
        return combine(tile.at(moved), range(1), carried)

    if taps is None:
        values = combine(tile, range(stencil.vertical.taps), values)
    else:
        values = loop(*taps, 1, tap_row, values)
    # A tile that read its accumulators from memory must not take them from its cache again.
    tile = tile.at(cursor)
    for lane, value in zip(lanes, values, strict=True):
        stencil.accumulation.finish(tile, lane, value)


def _in_order_of_inputs(
    stencil: Stencil, rows: range, valid: tuple[range, ...], down: range
) -> list[_Tap]:
    """All steps of a tile, those that read the same input next to each other."""
    steps = [
        _Tap(row, column, r, s)
        for row in rows
        for column, columns in enumerate(valid)
        for r in down
        for s in columns
    ]
    vertical, horizontal = stencil.vertical, stencil.horizontal
    return sorted(
        steps,
        key=lambda t: (
            t.row * vertical.stride + t.down * vertical.dilation,
            t.column * horizontal.stride + t.right * horizontal.dilation,
        ),
    )


def _moved(lane: Lane, *steps: tuple[Dim, int]) -> Lane:
    offsets = lane.offsets
    for dim, count in steps:
        offsets = tuple(o + count * s for o, s in zip(offsets, dim.strides, strict=True))
    return Lane(offsets, lane.width)
