"""Reductions over rows: results that lie along vectors, from blocks of whole rows.

    for pixels:
        results = start
        for rows, a block at a time:
            for lanes by vectors:  results += (rows of the block)

One result after the other would take a short run of every row, and memory gives long runs several
times as fast. So the results wait in memory, which are few enough to stay in the first-level cache,
and a block has as many rows as it has ways: rows a power of two apart share its sets.

What comes from memory, not from a cache, is asked for one block early.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.analysis.register_tile import LINE_BYTES, VectorUnit
from mlir_npu.passes.microkernels.accumulation import Accumulation
from mlir_npu.passes.microkernels.emit import Offset, loop
from mlir_npu.passes.microkernels.lanewise import (
    TILE_VECTORS,
    Cells,
    Combine,
    Lanewise,
    emit_lanes,
)
from mlir_npu.passes.microkernels.nest import Cursor, Lane, Tile, advance, for_each, start_of
from mlir_npu.passes.microkernels.region import splat_constant

# Rows of a block, of all inputs together; bytes that are taken from each at a time.
BLOCK_ROWS, RUN_BYTES = 8, 128


def takes_row_blocks(nest: Lanewise, unit: VectorUnit) -> bool:
    """Whether rows are longer than what registers hold, and results are plain memory."""
    cells = nest.cells
    if not (isinstance(cells, Accumulation) and cells.epilogue is None and nest.reduction):
        return False
    if nest.lanes.symbol is not None or nest.lanes.extent <= TILE_VECTORS * unit.lanes:
        return False
    rows, inputs = nest.reduction[-1], _moving(nest)
    if not inputs or rows.extent < 2 * _rows_of_block(nest):
        return False
    return all(stride in (0, 1) for stride in nest.lanes.strides) and all(
        rows.strides[i] >= nest.lanes.extent for i in inputs
    )


def emit_row_blocks(nest: Lanewise, unit: VectorUnit, streamed: Collection[int] = ()) -> None:
    """Emit the loops at the insertion point. streamed: operands that come from memory."""
    *outer, rows = nest.reduction
    count = _rows_of_block(nest)
    whole = rows.extent // count * count
    begins = replace(nest, pixels=(), reduction=(), combine=None, cells=_Start(nest.cells))

    def pixel(cursor: Cursor) -> None:
        if nest.cells.initial is not None:
            emit_lanes(begins, [_here(nest)], TILE_VECTORS, cursor, unit)
        for_each(outer, cursor, blocks)

    def blocks(cursor: Cursor) -> None:
        block = _block(nest, count, streamed)
        vectors = _vectors(nest, unit)

        def iteration(counter: Offset, _: list[ir.Value]) -> list[ir.Value]:
            emit_lanes(block, [_here(nest)], vectors, advance(cursor, rows, counter), unit)
            return []

        loop(0, whole, count, iteration)
        if rest := rows.extent - whole:
            last = advance(cursor, rows, whole)
            emit_lanes(_block(nest, rest, ()), [_here(nest)], vectors, last, unit)

    for_each(nest.pixels, start_of(nest.operands), pixel)


@dataclass(frozen=True)
class _Start:
    """Cells that write what accumulators begin with."""

    cells: Accumulation

    def start(self, tile: Tile, lane: Lane) -> ir.Value:
        return self.cells.start(tile, lane)

    def finish(self, tile: Tile, lane: Lane, value: ir.Value) -> None:
        self.cells.finish(tile, lane, value)


@dataclass(frozen=True)
class _Added:
    """Cells of partial sums, which are added to what is in memory."""

    cells: Accumulation
    element: ir.Type

    def start(self, tile: Tile, lane: Lane) -> ir.Value:
        return splat_constant(ir.FloatAttr.get(self.element, 0.0), lane.width)

    def finish(self, tile: Tile, lane: Lane, value: ir.Value) -> None:
        self.cells.add(tile, lane, value)


def _block(nest: Lanewise, count: int, streamed: Collection[int]) -> Lanewise:
    """The nest of `count` rows, which goes on with the results in memory."""
    rows, memory = nest.reduction[-1], nest.cells.memory
    goes_on = Accumulation(None, memory, None)
    cells: Cells = _Added(goes_on, nest.operands[memory].element) if nest.sums else goes_on
    ahead = {i: count * rows.strides[i] for i in _moving(nest) if i in streamed}
    return replace(
        nest,
        pixels=(),
        reduction=(Dim(count, rows.strides),),
        combine=_asking_ahead(nest, ahead),
        cells=cells,
    )


def _asking_ahead(nest: Lanewise, ahead: dict[int, int]) -> Combine:
    """`combine` of the nest, with prefetches of what is `ahead` elements further on."""
    rows = nest.reduction[-1]

    def combine(tile: Tile, lane: Lane, value: ir.Value) -> ir.Value:
        for index, distance in ahead.items():
            line = LINE_BYTES * 8 // nest.operands[index].element.width
            first = lane.offsets[index] % rows.strides[index]
            for start in range(-first % line, lane.width, line):
                tile.prefetch(index, lane.offsets[index] + distance + start)
        return nest.combine(tile, lane, value)

    return combine


def _moving(nest: Lanewise) -> list[int]:
    """Inputs of which every row is another run of memory."""
    pairs = zip(nest.lanes.strides, nest.reduction[-1].strides, strict=True)
    return [i for i, (along, down) in enumerate(pairs) if along == 1 and down]


def _rows_of_block(nest: Lanewise) -> int:
    return max(2, BLOCK_ROWS // len(_moving(nest)))


def _vectors(nest: Lanewise, unit: VectorUnit) -> int:
    """Vectors of one row at a time."""
    width = max(nest.operands[i].element.width for i in _moving(nest))
    return max(1, min(TILE_VECTORS, RUN_BYTES * 8 // (width * unit.lanes)))


def _here(nest: Lanewise) -> tuple[int, ...]:
    return (0,) * len(nest.operands)
