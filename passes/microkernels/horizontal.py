"""Reductions across lanes: partial results side by side in a vector, joined at the end.

    for pixels, some at a time:
        partial = identity of the combiner, for each pixel
        for outer reduction: for lanes by vectors:  partial[i] = region(inputs, partial[i])
        value = combiner(start, join(partial)), for each pixel
        finish(value)

Pixels that share an input, as in a product with a vector, are reduced some at a time: what they
share is loaded once, and memory gives several streams faster than one. Only regions that end in
`combiner(f(inputs), out)` may be reordered so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir_npu.dialect.bindings import ir, vector
from mlir_npu.passes.analysis.loop_nest import Dim, unit_dim
from mlir_npu.passes.analysis.register_tile import (
    LINE_BYTES,
    VectorUnit,
    split,
    vector_pieces,
)
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset, loop
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

# Rows that are reduced together: four streams from memory had a third more bandwidth than one.
ROWS = 4
# A matrix of this many bytes comes from memory: rows this many groups ahead are asked for early.
STREAMED_BYTES, GROUPS_AHEAD = 1 << 18, 2
# Independent sums that keep the arithmetic busy.
LATENCY = 8
# What a partial result starts from; for integers a function of their bits.
INTEGER_IDENTITIES = {
    "arith.addi": lambda bits: 0,
    "arith.muli": lambda bits: 1,
    "arith.ori": lambda bits: 0,
    "arith.xori": lambda bits: 0,
    "arith.andi": lambda bits: -1,
    "arith.maxsi": lambda bits: -(1 << bits - 1),
    "arith.minsi": lambda bits: (1 << bits - 1) - 1,
    "arith.maxui": lambda bits: 0,
    "arith.minui": lambda bits: -1,
}
IDENTITIES = {
    "arith.addf": 0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "arith.maxnumf": float("-inf"),
    "arith.minnumf": float("inf"),
}


@dataclass(frozen=True)
class Stream:
    """An operand that comes from memory; `ahead`: elements to the place that is needed later."""

    operand: int
    ahead: int


@dataclass(frozen=True)
class Horizontal:
    """`pixels` and `outer` reduction loops outermost first; `lanes` is the contiguous reduction,
    `element` the type that it accumulates in."""

    operands: tuple[Operand, ...]
    pixels: tuple[Dim, ...]
    outer: tuple[Dim, ...]
    lanes: Dim
    combine: Combine
    combiner: str
    cells: Cells
    element: ir.Type
    streams: tuple[Stream, ...] = ()


@dataclass(frozen=True)
class Sums:
    """For each row: vectors of partial results, and one element for what fills no vector."""

    partial: list[list[ir.Value]]
    rest: list[ir.Value]

    @property
    def values(self) -> list[ir.Value]:
        return [*(value for row in self.partial for value in row), *self.rest]

    def of(self, values: list[ir.Value]) -> Sums:
        """Other values in this arrangement."""
        rows, count = len(self.rest), len(self.partial[0])
        partial = [list(values[row * count : (row + 1) * count]) for row in range(rows)]
        return Sums(partial, list(values[rows * count :]))


def combiner_of(block: ir.Block) -> str | None:
    """Name of the op that joins the last block argument with the rest of the region, or None."""
    output = block.arguments[len(block.arguments) - 1]
    uses = list(output.uses)
    *_, terminator = block.operations
    if len(uses) != 1 or len(terminator.operands) != 1:
        return None
    last = uses[0].owner.operation
    if last.name not in IDENTITIES | INTEGER_IDENTITIES or terminator.operands[0].owner != last:
        return None
    return last.name


def emit_horizontal(nest: Horizontal, unit: VectorUnit) -> None:
    """Emit the loops at the insertion point."""
    *outer, rows = nest.pixels or (unit_dim(len(nest.operands)),)
    if rows.symbol is not None or rows.extent < ROWS or not _share_input(nest, rows):
        pixels = (*outer, rows)
        start = start_of(nest.operands)
        for_each(pixels, start, lambda cursor: _emit_rows(nest, [cursor], unit))
        return

    nest = replace(nest, streams=_streams(nest, rows))

    def groups(cursor: Cursor) -> None:
        for span in split(rows.extent, ROWS):
            step = span.size

            def group(first: Cursor, step=step) -> None:
                _emit_rows(nest, [advance(first, rows, row) for row in range(step)], unit)

            for_span(span, rows, cursor, group)

    for_each(outer, start_of(nest.operands), groups)


def _streams(nest: Horizontal, rows: Dim) -> tuple[Stream, ...]:
    """The matrix of a product with a vector, unless it is small."""
    return tuple(
        Stream(index, GROUPS_AHEAD * ROWS * between)
        for index, (operand, between, along) in enumerate(
            zip(nest.operands, rows.strides, nest.lanes.strides, strict=True)
        )
        if between
        and along == 1
        and rows.extent * between * operand.element.width // 8 >= STREAMED_BYTES
    )


def _share_input(nest: Horizontal, rows: Dim) -> bool:
    """Whether all rows are combined with the same vectors, as in a product with a vector."""
    pairs = zip(rows.strides, nest.lanes.strides, strict=True)
    return any(between == 0 and along == 1 for between, along in pairs)


def _emit_rows(nest: Horizontal, cursors: list[Cursor], unit: VectorUnit) -> None:
    identity = identity_of(nest.combiner, nest.element)
    most = max(1, TILE_VECTORS // len(cursors), LATENCY // len(cursors))
    count = min(most, max(1, nest.lanes.extent // unit.lanes))
    width = min(unit.lanes, vector_pieces(nest.lanes.extent, unit.lanes)[0])
    start = Sums(
        [[splat_constant(identity, width) for _ in range(count)] for _ in cursors],
        [splat_constant(identity, 1) for _ in cursors],
    )
    sums = _outer(nest, list(nest.outer), cursors, start, width)
    cell = Lane((0,) * len(nest.operands), 1)
    for cursor, partial, rest in zip(cursors, sums.partial, sums.rest, strict=True):
        total = _apply(nest.combiner, join(nest.combiner, partial), rest)
        tile = Tile(nest.operands, nest.lanes.strides, cursor)
        value = _apply(nest.combiner, nest.cells.start(tile, cell), total)
        nest.cells.finish(tile.at(cursor), cell, value)


def identity_of(combiner: str, element: ir.Type) -> ir.Attribute:
    if combiner in IDENTITIES:
        return ir.FloatAttr.get(element, IDENTITIES[combiner])
    bits = ir.IntegerType(element).width
    return ir.IntegerAttr.get(element, INTEGER_IDENTITIES[combiner](bits))


def _outer(
    nest: Horizontal, dims: list[Dim], cursors: list[Cursor], sums: Sums, width: int
) -> Sums:
    if not dims:
        return _lanes(nest, cursors, sums, width)
    dim, *inner = dims

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        moved = [advance(cursor, dim, counter) for cursor in cursors]
        return _outer(nest, inner, moved, sums.of(carried), width).values

    return sums.of(loop(0, dim.extent, 1, iteration, sums.values))


def _lanes(nest: Horizontal, cursors: list[Cursor], sums: Sums, width: int) -> Sums:
    """All vectors of the lane loop; what is left over goes into the rests, one by one."""
    count = len(sums.partial[0])
    step = width * count
    none = (0,) * len(nest.operands)

    def tiles(counter: Offset) -> list[Tile]:
        moved = (advance(cursor, nest.lanes, counter) for cursor in cursors)
        return [Tile(nest.operands, nest.lanes.strides, cursor) for cursor in moved]

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        places = tiles(counter)
        lanes = lanes_along(nest.lanes, [width] * count, none)
        for tile in places:
            _prefetch(nest, tile, step)
        cells = [(tile, lane) for tile in places for lane in lanes]
        return [nest.combine(*cell, value) for cell, value in zip(cells, carried, strict=True)]

    def single(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        pairs = zip(tiles(counter), carried, strict=True)
        return [nest.combine(tile, Lane(none, 1), value) for tile, value in pairs]

    main = split(nest.lanes.extent, step)[0].count * step if nest.lanes.extent >= step else 0
    partial = loop(0, main, step, iteration, [v for row in sums.partial for v in row])
    rest = loop(main, nest.lanes.extent, 1, single, sums.rest)
    return sums.of([*partial, *rest])


def _prefetch(nest: Horizontal, tile: Tile, elements: int) -> None:
    """The lines of `elements` of every stream, as many rows ahead as it says."""
    for stream in nest.streams:
        line = LINE_BYTES * 8 // nest.operands[stream.operand].element.width
        for start in range(0, elements, line):
            tile.prefetch(stream.operand, stream.ahead + start)


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
