"""Reductions across lanes: partial results side by side in a vector, joined at the end.

    for pixels, some at a time:
        partial = identity of the combiner, for each pixel
        for outer reduction: for lanes by vectors:  partial[i] = region(inputs, partial[i])
        value = combiner(start, join(partial)), for each pixel
        finish(value)

Some pixels are reduced together: neighbours that share an input, as in a product with a vector,
load it once; and memory gives several streams faster than one if they are far apart. Long rows
that are not are one stream, row after row, which the processor sees and runs ahead of. What fills
no vector is done with the last one, of which only the lanes count that are new. Only regions that
end in `combiner(f(inputs), out)` may be reordered so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir_npu.dialect.bindings import arith, ir, vector
from mlir_npu.passes.analysis.loop_nest import Dim, unit_dim
from mlir_npu.passes.analysis.register_tile import LINE_BYTES, Span, VectorUnit, vector_pieces
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.combiners import identity_of
from mlir_npu.passes.microkernels.emit import Offset, constant, loop
from mlir_npu.passes.microkernels.lanewise import TILE_VECTORS, Cells, Combine
from mlir_npu.passes.microkernels.nest import (
    Cursor,
    Lane,
    Tile,
    advance,
    for_each,
    for_span,
    lanes_along,
    start_of,
)
from mlir_npu.passes.microkernels.region import splat_constant, vector_type

# Streams that are read together: four had a fifth to a third more bandwidth from memory than one,
# eight no more than one.
STREAMS = 4
# Bytes of long rows, and between streams that are far apart.
LONG_ROW, FAR_APART = 2048, 8192
# Independent sums that keep the arithmetic busy, and those of one row: more are more accurate.
LATENCY, ROW_VECTORS = 8, 4
# A matrix of this many bytes comes from memory: rows this many groups ahead are asked for early.
STREAMED_BYTES, GROUPS_AHEAD = 1 << 18, 2
# Of what is known to come from memory, this many bytes further on in each row: 512 had two thirds
# of the gain, 4096 half of it.
BYTES_AHEAD = 2048


@dataclass(frozen=True)
class Stream:
    """An operand that comes from memory; `ahead`: elements to the place that is needed later."""

    operand: int
    ahead: int


@dataclass(frozen=True)
class Horizontal:
    """`pixels` and `outer` reduction loops outermost first; `lanes` is the contiguous reduction,
    `element` the type that it accumulates in. long: the region alone keeps the arithmetic busy,
    and needs the registers; streamed: inputs that come from memory."""

    operands: tuple[Operand, ...]
    pixels: tuple[Dim, ...]
    outer: tuple[Dim, ...]
    lanes: Dim
    combine: Combine
    combiner: str
    cells: Cells
    element: ir.Type
    long: bool = False
    streams: tuple[Stream, ...] = ()
    streamed: frozenset[int] = frozenset()


# Vectors of partial results of each row.
Sums = list[list[ir.Value]]


def emit_horizontal(nest: Horizontal, unit: VectorUnit) -> None:
    """Emit the loops at the insertion point."""
    *outer, rows = nest.pixels or (unit_dim(len(nest.operands)),)
    together = _rows_together(nest, rows)
    if together == 1:
        every = (*outer, rows)
        for_each(every, start_of(nest.operands), lambda cursor: _emit_rows(nest, [cursor], unit))
        return
    count = rows.extent // together
    apart, step = count, 1
    if _share_input(nest, rows):
        apart, step = 1, together
        nest = replace(nest, streams=_streams(nest, rows))
    else:
        nest = replace(nest, streams=_streams_along_rows(nest, rows))

    def group(first: Cursor) -> None:
        _emit_rows(nest, [advance(first, rows, row * apart) for row in range(together)], unit)

    def groups(cursor: Cursor) -> None:
        for_span(Span(0, count, step), rows, cursor, group)
        rest = Span(count * together, rows.extent - count * together, 1)
        for_span(rest, rows, cursor, lambda last: _emit_rows(nest, [last], unit))

    for_each(outer, start_of(nest.operands), groups)


def _rows_together(nest: Horizontal, rows: Dim) -> int:
    """Rows that make as many streams as memory likes."""
    if rows.symbol is not None:
        return 1
    pairs = zip(rows.strides, nest.lanes.strides, strict=True)
    streams = sum(between != 0 and along == 1 for between, along in pairs)
    together = max(1, min(rows.extent, STREAMS // max(1, streams)))
    return 1 if _are_neighbours(nest, rows, together) else together


def _are_neighbours(nest: Horizontal, rows: Dim, together: int) -> bool:
    """Whether long rows would be read together that one after the other are a stream."""
    if _share_input(nest, rows):
        return False
    width = nest.operands[0].element.width // 8
    apart = rows.extent // together * rows.strides[0] * width
    return nest.lanes.extent * width >= LONG_ROW and 0 < apart < FAR_APART


def _streams(nest: Horizontal, rows: Dim) -> tuple[Stream, ...]:
    """The matrix of a product with a vector, unless it is small."""
    return tuple(
        Stream(index, GROUPS_AHEAD * STREAMS * between)
        for index, (operand, between, along) in enumerate(
            zip(nest.operands, rows.strides, nest.lanes.strides, strict=True)
        )
        if between
        and along == 1
        and rows.extent * between * operand.element.width // 8 >= STREAMED_BYTES
    )


def _streams_along_rows(nest: Horizontal, rows: Dim) -> tuple[Stream, ...]:
    """Inputs of sums: extrema, of which a vector takes longer, are slower so."""
    if nest.combiner not in ("arith.addf", "arith.addi"):
        return ()
    return tuple(
        Stream(index, BYTES_AHEAD * 8 // nest.operands[index].element.width)
        for index in sorted(nest.streamed)
        if rows.strides[index] and nest.lanes.strides[index] == 1
    )


def _share_input(nest: Horizontal, rows: Dim) -> bool:
    """Whether all rows are combined with the same vectors, as in a product with a vector."""
    pairs = zip(rows.strides, nest.lanes.strides, strict=True)
    return any(between == 0 and along == 1 for between, along in pairs)


def _emit_rows(nest: Horizontal, cursors: list[Cursor], unit: VectorUnit) -> None:
    identity = identity_of(nest.combiner, nest.element)
    busy = max(LATENCY, min(ROW_VECTORS * len(cursors), unit.registers // 2))
    most = max(1, (TILE_VECTORS if nest.long else busy) // len(cursors))
    count = min(most, max(1, nest.lanes.extent // unit.lanes))
    width = min(unit.lanes, vector_pieces(nest.lanes.extent, unit.lanes)[0])
    start = [[splat_constant(identity, width) for _ in range(count)] for _ in cursors]
    sums = _outer(nest, list(nest.outer), cursors, start, width)
    cell = Lane((0,) * len(nest.operands), 1)
    for cursor, partial in zip(cursors, sums, strict=True):
        tile = Tile(nest.operands, nest.lanes.strides, cursor)
        value = _apply(nest.combiner, nest.cells.start(tile, cell), join(nest.combiner, partial))
        nest.cells.finish(tile.at(cursor), cell, value)


def _outer(
    nest: Horizontal, dims: list[Dim], cursors: list[Cursor], sums: Sums, width: int
) -> Sums:
    if not dims:
        return _lanes(nest, cursors, sums, width)
    dim, *inner = dims

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        moved = [advance(cursor, dim, counter) for cursor in cursors]
        return _flat(_outer(nest, inner, moved, _of_rows(carried, len(cursors)), width))

    return _of_rows(loop(0, dim.extent, 1, iteration, _flat(sums)), len(cursors))


def _lanes(nest: Horizontal, cursors: list[Cursor], sums: Sums, width: int) -> Sums:
    """All vectors of the lane loop, then the vectors and the part of one that are left over."""
    extent, count = nest.lanes.extent, len(sums[0])
    step = width * count
    main = extent // step * step

    def add(place: Offset | int, vectors: int, sums: Sums) -> Sums:
        """With the vectors from `place` on added to the first partial results."""
        lanes = lanes_along(nest.lanes, [width] * vectors, (0,) * len(nest.operands))
        added = []
        for cursor, row in zip(cursors, sums, strict=True):
            tile = Tile(nest.operands, nest.lanes.strides, advance(cursor, nest.lanes, place))
            if vectors == count:
                _prefetch(nest, tile, step)
            new = [nest.combine(tile, lane, value) for lane, value in zip(lanes, row)]
            added.append([*new, *row[vectors:]])
        return added

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        return _flat(add(counter, count, _of_rows(carried, len(cursors))))

    sums = _of_rows(loop(0, main, step, iteration, _flat(sums)), len(cursors))
    vectors, left = divmod(extent - main, width)
    if vectors:
        sums = add(main, vectors, sums)
    if left:
        new = _mask(width - left, width)
        last = add(extent - width, 1, sums)
        chosen = zip(last, sums, strict=True)
        sums = [[_select(new, more[0], row[0]), *row[1:]] for more, row in chosen]
    return sums


def _prefetch(nest: Horizontal, tile: Tile, elements: int) -> None:
    """The lines of `elements` of every stream, as many rows ahead as it says."""
    for stream in nest.streams:
        line = LINE_BYTES * 8 // nest.operands[stream.operand].element.width
        for start in range(0, elements, line):
            tile.prefetch(stream.operand, stream.ahead + start)


def _flat(sums: Sums) -> list[ir.Value]:
    return [value for row in sums for value in row]


def _of_rows(values: Sequence[ir.Value], rows: int) -> Sums:
    count = len(values) // rows
    return [list(values[row * count : (row + 1) * count]) for row in range(rows)]


def _mask(first: int, width: int) -> ir.Value:
    """True in the lanes from `first` on."""
    type_ = vector_type(ir.IntegerType.get_signless(1), width)
    bits = ir.DenseElementsAttr.get(
        [ir.BoolAttr.get(lane >= first) for lane in range(width)], type_
    )
    return constant(("mask", first, width), lambda: arith.ConstantOp(type_, bits).result)


def _select(condition: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.SelectOp(condition, left, right).result


def join(combiner: str, values: list[ir.Value]) -> ir.Value:
    """One element from vectors: pairs of vectors first, then halves of the last one."""
    while len(values) > 1:
        half = (len(values) + 1) // 2
        pairs = zip(values[:half], values[half:], strict=False)
        values = [_apply(combiner, a, b) for a, b in pairs] + values[len(values) - half : half]
    value = values[0]
    while (width := ir.VectorType(value.type).shape[0]) > 1:
        low, high = (_slice(value, start, width // 2) for start in (0, width // 2))
        value = _apply(combiner, low, high)
    return value


def _slice(value: ir.Value, start: int, size: int) -> ir.Value:
    type_ = vector_type(ir.VectorType(value.type).element_type, size)
    return vector.ExtractStridedSliceOp(type_, value, [start], [size], [1]).result


def _apply(combiner: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return ir.Operation.create(combiner, results=[left.type], operands=[left, right]).result
