"""Register-blocked contraction: the one generator behind convolutions and matrix products.

    acc[pixel, block, lane] += input[pixel, reduction] * weights[block, reduction, lane]

Emitted code, for a tile of `pixels x vectors` accumulators (see analysis/register_tile.py):

    for block tile: for pixel rows: for pixel columns by tile:
        accumulators = start
        for reduction: iter_args(accumulators)
            load the smaller side, stream the larger: broadcast scalars, weight vectors, FMA
        finish(accumulators)            # epilogue in registers, then one store
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir, vector
from mlir_npu.passes.analysis.loop_nest import Dim, unit_dim
from mlir_npu.passes.analysis.register_tile import (
    RegisterTile,
    VectorUnit,
    check_registers,
    choose_register_tile,
    split,
    vector_pieces,
)
from mlir_npu.passes.microkernels.accumulation import Accumulation
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset, loop
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
from mlir_npu.passes.microkernels.region import splat

INPUT, WEIGHTS = 0, 1
F32_BYTES = 4
# Innermost reductions up to this many steps are unrolled: a loop would cost more than it saves.
UNROLLED_STEPS = 4


@dataclass(frozen=True)
class Contraction:
    """Operands (input, weights, then those of the accumulation) and the loops over them.

    `batch`: loops around everything, each with weights of its own.
    """

    operands: tuple[Operand, ...]
    pixels: tuple[Dim, ...]
    block: Dim
    lanes: Dim
    reduction: tuple[Dim, ...]
    accumulation: Accumulation
    batch: tuple[Dim, ...] = ()


@dataclass(frozen=True)
class _Shape:
    """Constant layout of one register tile: accumulators are ordered pixel by pixel."""

    pixels: tuple[tuple[int, ...], ...]
    vectors: tuple[Lane, ...]

    def cell(self, pixel: int, vector_index: int) -> Lane:
        vector_ = self.vectors[vector_index]
        offsets = zip(self.pixels[pixel], vector_.offsets, strict=True)
        return Lane(tuple(a + b for a, b in offsets), vector_.width)


def emit_contraction(contraction: Contraction, unit: VectorUnit) -> None:
    """Emit the loops at the insertion point."""
    start = start_of(contraction.operands)
    for_each(contraction.batch, start, lambda cursor: _emit_product(contraction, cursor, unit))


def _emit_product(contraction: Contraction, start: Cursor, unit: VectorUnit) -> None:
    none = unit_dim(len(contraction.operands))
    *outer, rows, columns = [none, none, *contraction.pixels]
    tile = choose_register_tile(
        rows.extent,
        columns.extent,
        contraction.block.extent,
        contraction.lanes.extent,
        unit,
        (rows.strides[INPUT] * F32_BYTES, columns.strides[INPUT] * F32_BYTES),
    )
    for blocks in split(contraction.block.extent, tile.blocks):

        def block_tile(cursor: Cursor, blocks=blocks) -> None:
            def image(inner: Cursor) -> None:
                _emit_image(contraction, rows, columns, tile, blocks.size, inner, unit)

            for_each(outer, cursor, image)

        for_span(blocks, contraction.block, start, block_tile)


def _emit_image(
    contraction: Contraction,
    rows: Dim,
    columns: Dim,
    tile: RegisterTile,
    blocks: int,
    cursor: Cursor,
    unit: VectorUnit,
) -> None:
    vectors = _vectors(contraction, blocks, unit)
    for row_span in split(rows.extent, tile.rows):
        for column_span in split(columns.extent, tile.columns):
            pixels = _pixels(rows, row_span.size, columns, column_span.size)
            check_registers(len(pixels), len(vectors), unit)
            shape = _Shape(pixels, vectors)

            def row_tile(cursor: Cursor, span=column_span, shape=shape) -> None:
                for_span(span, columns, cursor, lambda inner: _emit_tile(contraction, shape, inner))

            for_span(row_span, rows, cursor, row_tile)


def _vectors(contraction: Contraction, blocks: int, unit: VectorUnit) -> tuple[Lane, ...]:
    pieces = vector_pieces(contraction.lanes.extent, unit.lanes)
    lanes: list[Lane] = []
    for block in range(blocks):
        base = [block * stride for stride in contraction.block.strides]
        lanes += lanes_along(contraction.lanes, pieces, base)
    return tuple(lanes)


def _pixels(
    rows: Dim, row_count: int, columns: Dim, column_count: int
) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(r * a + c * b for a, b in zip(rows.strides, columns.strides, strict=True))
        for r in range(row_count)
        for c in range(column_count)
    )


def _emit_tile(contraction: Contraction, shape: _Shape, cursor: Cursor) -> None:
    pixels, vectors = range(len(shape.pixels)), range(len(shape.vectors))
    accumulation = contraction.accumulation
    tile = Tile(contraction.operands, contraction.lanes.strides, cursor)
    start = [accumulation.start(tile, shape.cell(p, v)) for p in pixels for v in vectors]
    done = _reduce(contraction, shape, tile, list(contraction.reduction), start)
    # A tile that read its accumulators from memory must not take them from its cache again.
    tile = tile.at(cursor)
    for v in vectors:
        for p in pixels:
            accumulation.finish(tile, shape.cell(p, v), done[p * len(vectors) + v])


def _reduce(
    contraction: Contraction, shape: _Shape, tile: Tile, dims: list[Dim], values: list[ir.Value]
) -> list[ir.Value]:
    if not dims:
        return _step(shape, tile, values)
    dim, *inner = dims

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        return _reduce(
            contraction, shape, tile.at(advance(tile.cursor, dim, counter)), inner, carried
        )

    if not inner and dim.extent <= UNROLLED_STEPS:
        for step in range(dim.extent):
            values = list(iteration(Offset(None, step), values))
        return values
    return loop(0, dim.extent, 1, iteration, values)


def _step(shape: _Shape, tile: Tile, values: list[ir.Value]) -> list[ir.Value]:
    """One reduction element: the side with fewer registers is loaded first and held."""
    pixels, vectors = range(len(shape.pixels)), range(len(shape.vectors))
    values = list(values)

    def scalar(p: int) -> ir.Value:
        return tile.load_scalar(INPUT, shape.pixels[p][INPUT])

    def weights(v: int) -> ir.Value:
        lane = shape.vectors[v]
        return tile.load(WEIGHTS, lane.offsets[WEIGHTS], lane.width)

    def multiply_add(p: int, v: int, scalar_: ir.Value) -> None:
        at = p * len(vectors) + v
        broadcast = splat(scalar_, shape.vectors[v].width)
        values[at] = vector.FMAOp(broadcast, weights(v), values[at]).result

    if len(vectors) <= len(pixels):
        for v in vectors:
            weights(v)
        for p in pixels:
            held = scalar(p)
            for v in vectors:
                multiply_add(p, v, held)
        return values
    scalars = [scalar(p) for p in pixels]
    for v in vectors:
        for p in pixels:
            multiply_add(p, v, scalars[p])
    return values
