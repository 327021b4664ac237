"""Register-blocked contraction: the one generator behind convolutions and matrix products.

    acc[pixel, block, lane] += input[pixel, reduction] * weights[block, reduction, lane]

Emitted code, for a tile of `pixels x vectors` accumulators (see analysis/register_tile.py):

    for block tile: for pixel rows: for pixel columns by tile:
        accumulators = start
        for reduction: iter_args(accumulators)
            load the smaller side, stream the larger: broadcast scalars, weight vectors, FMA
        finish(accumulators)            # epilogue in registers, then one store

Where the image is padded, taps that would meet padding only are left out (see `Window`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim, can_merge, unit_dim
from mlir_npu.passes.analysis.register_tile import (
    SHUFFLE_REGISTERS,
    SHUFFLED_LOAD_COST,
    VECTOR_LOAD_COST,
    CpuVectors,
    RegisterTile,
    Span,
    check_registers,
    choose_register_tile,
    split,
    vector_pieces,
)
from mlir_npu.passes.microkernels.accumulation import Accumulation
from mlir_npu.passes.microkernels.axis import Axis
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.byte_products import (
    REGISTERS,
    can_multiply_bytes,
    reduce_bytes,
)
from mlir_npu.passes.microkernels.emit import Offset
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
from mlir_npu.passes.microkernels.own_loads import have_own_loads, hidden_zero, read_again
from mlir_npu.passes.microkernels.register_reduction import (
    COLUMN_POSITION,
    INPUT,
    ROW_POSITION,
    WEIGHTS,
    TileShape,
    Window,
    accumulate,
    reduce_tile,
)
from mlir_npu.passes.microkernels.single_lane import has_single_lane, reduce_with_single_lane
from mlir_npu.passes.microkernels.streaming import find_stream, with_linear_stride, with_stride

# With more tiles in a row than this the share of padding is not worth code of its own.
BORDER_TILES = 2


@dataclass(frozen=True)
class Contraction:
    """Operands (input, weights, then those of the accumulation) and the loops over them.

    `batch`: loops around everything, each with weights of its own. `window`: of a padded image.
    `moved`: where a move took the weights from. `lead`: elements from the input's start to the
    first window, which begins before it where padding is left out. `prefetched`: operands and
    offsets in them that every step of the reduction asks for. `again`: the operand that is a second
    reading of the image.
    """

    operands: tuple[Operand, ...]
    pixels: tuple[Dim, ...]
    block: Dim
    lanes: Dim
    reduction: tuple[Dim, ...]
    accumulation: Accumulation
    batch: tuple[Dim, ...] = ()
    window: Window | None = None
    moved: Operand | None = None
    lead: Offset = Offset()
    prefetched: tuple[tuple[int, int], ...] = ()
    again: int | None = None


def emit_contraction(contraction: Contraction, unit: CpuVectors) -> None:
    """Emit the loops at the insertion point."""
    image, *others = start_of(contraction.operands)
    start = (image + contraction.lead, *others)
    for_each(contraction.batch, start, lambda cursor: _emit_product(contraction, cursor, unit))


def _emit_product(contraction: Contraction, start: Cursor, unit: CpuVectors) -> None:
    """The product block by block, or vector by vector where blocks lie side by side."""
    block, lanes = contraction.block, contraction.lanes
    if block.is_unit or not can_merge(block, lanes):
        _emit_blocks(contraction, start, unit)
        return
    whole = replace(contraction, lanes=replace(lanes, extent=block.extent * lanes.extent))
    for span in _lane_spans(whole, unit):
        step = tuple(span.size * stride for stride in lanes.strides)
        part = replace(
            contraction, block=Dim(span.count, step), lanes=replace(lanes, extent=span.size)
        )
        _emit_blocks(part, advance(start, lanes, span.start), unit)


def _lane_spans(contraction: Contraction, unit: CpuVectors) -> list[Span]:
    """Blocks of full vectors, and a wider one at the end with the lanes that fill none.

    In a block of their own these lanes would cost another walk through the other operand.
    """
    full, rest = divmod(contraction.lanes.extent, unit.lanes)
    if not rest or not full:
        return list(split(contraction.lanes.extent, unit.lanes))
    vectors = replace(
        contraction,
        block=replace(contraction.block, extent=full),
        lanes=replace(contraction.lanes, extent=unit.lanes),
    )
    last = (full - 1) % _register_tile(vectors, unit).blocks + 1
    main = Span(0, full - last, unit.lanes)
    wide = Span((full - last) * unit.lanes, 1, last * unit.lanes + rest)
    return [main, wide] if main.count else [wide]


def _rows_and_columns(contraction: Contraction) -> tuple[list[Dim], Dim, Dim]:
    """Loops around the pixels of tiles, and the two along these."""
    none = unit_dim(len(contraction.operands))
    *outer, rows, columns = [none, none, *contraction.pixels]
    return outer, rows, columns


def _register_tile(contraction: Contraction, unit: CpuVectors) -> RegisterTile:
    _, rows, columns = _rows_and_columns(contraction)
    size = contraction.operands[INPUT].element.width // 8
    if _multiplies_bytes(contraction, unit):
        unit = replace(unit, registers=unit.registers - REGISTERS)
    is_shuffled = contraction.lanes.strides[WEIGHTS] == 2
    if is_shuffled:
        unit = replace(unit, registers=unit.registers - SHUFFLE_REGISTERS)
    return choose_register_tile(
        rows.extent,
        columns.extent,
        contraction.block.extent,
        contraction.lanes.extent - _has_single_lane(contraction, unit),
        unit,
        (rows.strides[INPUT] * size, columns.strides[INPUT] * size),
        SHUFFLED_LOAD_COST if is_shuffled else VECTOR_LOAD_COST,
    )


def _emit_blocks(contraction: Contraction, start: Cursor, unit: CpuVectors) -> None:
    tile = _register_tile(contraction, unit)
    contraction, start = _streamed(contraction, start, tile)
    widths = [lane.width for lane in _vectors(contraction, tile.blocks, unit)]
    if have_own_loads(widths, unit.lanes) and _has_plain_products(contraction, unit):
        contraction, start = _with_own_loads(contraction, start)
    outer, rows, columns = _rows_and_columns(contraction)
    for blocks in split(contraction.block.extent, tile.blocks):

        def block_tile(cursor: Cursor, blocks=blocks) -> None:
            def image(inner: Cursor) -> None:
                _emit_image(contraction, rows, columns, tile, blocks.size, inner, unit)

            for_each(outer, cursor, image)

        for_span(blocks, contraction.block, start, block_tile)


def _has_plain_products(contraction: Contraction, unit: CpuVectors) -> bool:
    """Whether every product is that of a scalar of the image and a vector."""
    is_float = isinstance(contraction.operands[INPUT].element, ir.FloatType)
    return is_float and not _has_single_lane(contraction, unit)


def _with_own_loads(contraction: Contraction, start: Cursor) -> tuple[Contraction, Cursor]:
    """The same with a second reading of the image for the narrower vectors."""
    operands, window = contraction.operands, contraction.window
    at = len(operands) if window is None else len(operands) + ROW_POSITION
    if window is not None:
        taps = (window.row_taps, window.column_taps, window.channels)
        window = _with_taps(window, read_again(taps, INPUT, at))
    block, lanes = read_again((contraction.block, contraction.lanes), INPUT, at)
    twice = replace(
        contraction,
        operands=(*operands[:at], operands[INPUT], *operands[at:]),
        pixels=read_again(contraction.pixels, INPUT, at),
        block=block,
        lanes=lanes,
        reduction=read_again(contraction.reduction, INPUT, at),
        window=window,
        again=at,
    )
    return twice, (*start[:at], start[INPUT] + hidden_zero(), *start[at:])


def _with_taps(window: Window, taps: Sequence[Dim]) -> Window:
    rows, columns, channels = taps
    return replace(window, row_taps=rows, column_taps=columns, channels=channels)


def _streamed(
    contraction: Contraction, start: Cursor, tile: RegisterTile
) -> tuple[Contraction, Cursor]:
    """The same with prefetches of what comes next from memory, if that is worth it."""
    operands, pixels, window = contraction.operands, contraction.pixels, contraction.window
    dims = (pixels, contraction.block, contraction.lanes, contraction.reduction)
    stream = find_stream(operands, *dims, tile, contraction.moved)
    if stream is None:
        return contraction, start
    at = len(operands) if window is None else len(operands) + ROW_POSITION
    if window is not None:
        taps = (window.row_taps, window.column_taps, window.channels)
        window = _with_taps(window, with_linear_stride(taps, stream.step, at))
    place = operands.index(stream.source) if stream.source in operands else None
    begin = Offset(None, stream.source.start) if place is None else start[place]
    streamed = replace(
        contraction,
        operands=(*operands[:at], stream.source, *operands[at:]),
        pixels=with_linear_stride(pixels, stream.pixel, at),
        block=with_stride(contraction.block, stream.block, at),
        lanes=with_stride(contraction.lanes, 0, at),
        reduction=with_linear_stride(contraction.reduction, stream.step, at),
        window=window,
        prefetched=tuple((at, line) for line in stream.lines),
    )
    return streamed, (*start[:at], begin + stream.ahead, *start[at:])


def _emit_image(
    contraction: Contraction,
    rows: Dim,
    columns: Dim,
    tile: RegisterTile,
    blocks: int,
    cursor: Cursor,
    unit: CpuVectors,
) -> None:
    vectors = _vectors(contraction, blocks, unit)
    for row_span in split(rows.extent, tile.rows):
        for column_span, taps in _column_spans(contraction.window, columns, tile.columns):
            pixels = _pixels(rows, row_span.size, columns, column_span.size)
            check_registers(len(pixels), len(vectors) - _has_single_lane(contraction, unit), unit)
            tile_taps = taps and taps * row_span.size
            shape = TileShape(pixels, vectors, tile_taps, contraction.prefetched, contraction.again)

            def row_tile(cursor: Cursor, span=column_span, shape=shape) -> None:
                for_span(
                    span, columns, cursor, lambda inner: _emit_tile(contraction, shape, inner, unit)
                )

            for_span(row_span, rows, cursor, row_tile)


def _column_spans(
    window: Window | None, columns: Dim, width: int
) -> list[tuple[Span, tuple[range, ...] | None]]:
    """Runs of equal tiles along a row, and the column taps of their pixels if not all count."""
    spans = [(span, None) for span in split(columns.extent, width)]
    if window is None:
        return spans
    axis, few = window.horizontal, -(-columns.extent // width) <= BORDER_TILES
    if not (axis.is_static and (axis.begins_early or axis.ends_late)):
        return spans
    if window.has_padding and not (few and columns.strides[COLUMN_POSITION]):
        return spans
    return [(span, taps if _are_some(taps, axis) else None) for span, taps in axis.spans(width)]


def _are_some(taps: Sequence[range], axis: Axis) -> bool:
    """Whether some window lacks taps."""
    return any(len(own) < axis.taps for own in taps)


def _vectors(contraction: Contraction, blocks: int, unit: CpuVectors) -> tuple[Lane, ...]:
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


def _has_single_lane(contraction: Contraction, unit: CpuVectors) -> bool:
    """Whether the only block ends in a lane that is summed along the reduction."""
    operands, lanes, reduction = contraction.operands, contraction.lanes, contraction.reduction
    is_plain = contraction.window is None and contraction.block.extent == 1
    return is_plain and has_single_lane(operands, lanes, reduction, unit.lanes)


def _multiplies_bytes(contraction: Contraction, unit: CpuVectors) -> bool:
    widths = vector_pieces(contraction.lanes.extent, unit.lanes)
    image = contraction.operands[INPUT].element
    return (
        unit.multiplies_bytes
        and contraction.window is None
        and can_multiply_bytes(widths, image, contraction.lanes, contraction.reduction)
    )


def _emit_tile(
    contraction: Contraction, shape: TileShape, cursor: Cursor, unit: CpuVectors
) -> None:
    pixels, vectors = range(len(shape.pixels)), range(len(shape.vectors))
    accumulation = contraction.accumulation
    tile = Tile(contraction.operands, contraction.lanes.strides, cursor)
    start = [accumulation.start(tile, shape.cell(p, v)) for p in pixels for v in vectors]
    dims = list(contraction.reduction)
    if _has_single_lane(contraction, unit):
        done = reduce_with_single_lane(dims[0], unit.lanes, shape, tile, start, accumulate)
    elif _multiplies_bytes(contraction, unit):
        images = [pixel[INPUT] for pixel in shape.pixels]
        done = reduce_bytes(
            dims, images, shape.vectors, tile, start, lambda at, sums: accumulate(shape, at, sums)
        )
    else:
        done = reduce_tile(dims, contraction.window, shape, tile, start)
    # A tile that read its accumulators from memory must not take them from its cache again.
    tile = tile.at(cursor)
    for v in vectors:
        for p in pixels:
            accumulation.finish(tile, shape.cell(p, v), done[p * len(vectors) + v])
