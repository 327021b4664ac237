"""The reduction of a register tile: loops of steps that carry its accumulators.

In a padded image a tap of the window may meet data for some pixels of a tile, for all, or for none.
Where the columns of a tile are known at compile time, the steps of each tap are emitted for those
pixels alone. Row taps are loops whose bounds come from where the tile stands: of two rows of
pixels, the lower one begins with earlier taps, and the upper one ends with later ones.

Rounding errors of a sum grow with the number of its terms, so long sums of floats are sums of
partial sums. What was added up before waits in memory meanwhile, which costs one load, one addition
and one store of each accumulator for each part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim, merge
from mlir_npu.passes.microkernels.arithmetic import add, is_integer, multiply_add, widened
from mlir_npu.passes.microkernels.axis import Axis
from mlir_npu.passes.microkernels.emit import Offset, loop, maximum, minimum
from mlir_npu.passes.microkernels.nest import Lane, Tile, advance
from mlir_npu.passes.microkernels.region import splat, splat_constant

INPUT, WEIGHTS = 0, 1
# Operands of a nest with a window: the last two are positions in rows and columns of the image.
ROW_POSITION, COLUMN_POSITION = -2, -1
# Innermost reductions up to this many steps are unrolled: a loop would cost more than it saves.
UNROLLED_STEPS = 4
# Sums of as many terms are made of parts; terms of a part, about.
LONG_SUM, PART_TERMS = 768, 512

Bounds = tuple[Offset | int, Offset | int]


@dataclass(frozen=True)
class Window:
    """Window of a padded image: its axes, and its loops over row taps, column taps, channels.

    has_padding: whether the padding is there and may be read.
    """

    vertical: Axis
    horizontal: Axis
    row_taps: Dim
    column_taps: Dim
    channels: Dim
    has_padding: bool = True


@dataclass(frozen=True)
class TileShape:
    """Constant layout of one register tile: accumulators are ordered pixel by pixel.

    `column_taps`: for every pixel those that meet data, None where all do. `prefetched`: an operand
    and offsets in it to ask for at every step. `again`: the operand that is a second reading of the
    image, for the vectors behind the first (see `own_loads.py`).
    """

    pixels: tuple[tuple[int, ...], ...]
    vectors: tuple[Lane, ...]
    column_taps: tuple[range, ...] | None = None
    prefetched: tuple[tuple[int, int], ...] = ()
    again: int | None = None

    def cell(self, pixel: int, vector_index: int) -> Lane:
        vector_ = self.vectors[vector_index]
        offsets = zip(self.pixels[pixel], vector_.offsets, strict=True)
        return Lane(tuple(a + b for a, b in offsets), vector_.width)

    def only(self, pixels: Sequence[int]) -> TileShape:
        taps = self.column_taps
        return TileShape(
            tuple(self.pixels[p] for p in pixels),
            self.vectors,
            None if taps is None else tuple(taps[p] for p in pixels),
            self.prefetched,
            self.again,
        )


def reduce_tile(
    dims: list[Dim],
    window: Window | None,
    shape: TileShape,
    tile: Tile,
    values: list[ir.Value],
) -> list[ir.Value]:
    """Accumulators after all steps. `dims`: the reduction, with row taps outermost."""
    if window is None or not dims:
        return _reduce(shape, tile, dims, values)
    for bounds, pixels in _row_parts(window.vertical, shape, tile):

        def part(part_: TileShape, chosen: list[ir.Value], bounds=bounds) -> list[ir.Value]:
            if part_.column_taps is not None:
                return _reduce_taps(window, bounds, part_, tile, chosen)
            factor = dims[0].extent // window.vertical.taps
            lower, upper = (bound.times(factor) for bound in bounds)
            return _reduce(part_, tile, dims, chosen, (lower, upper))

        values = _for_pixels(shape, pixels, values, part)
    return values


def _row_parts(
    axis: Axis, shape: TileShape, tile: Tile
) -> list[tuple[tuple[Offset, Offset], list[int]]]:
    """Ranges of row taps, and the pixels for which these may meet data."""
    everyone = list(range(len(shape.pixels)))
    if not (axis.begins_early or axis.ends_late):
        return [((Offset(), Offset(None, axis.taps)), everyone)]
    rows = [pixel[ROW_POSITION] for pixel in shape.pixels]
    begin = tile.cursor[ROW_POSITION]
    upper_row, lower_row = begin + min(rows), begin + max(rows)
    first, end = axis.valid_taps(upper_row, lower_row)
    if len(set(rows)) != 2:
        return [((first, end), everyone)]
    parts = []
    both = axis.valid_taps(upper_row, upper_row)[0], axis.valid_taps(lower_row, lower_row)[1]
    if axis.begins_early:
        parts.append(((first, minimum(*both)), [p for p in everyone if rows[p] == max(rows)]))
    parts.append((both, everyone))
    if axis.ends_late:
        parts.append(((maximum(*both), end), [p for p in everyone if rows[p] == min(rows)]))
    return parts


def _reduce_taps(
    window: Window, bounds: Bounds, shape: TileShape, tile: Tile, values: list[ir.Value]
) -> list[ir.Value]:
    """Row taps in a loop, column taps one by one, each for the pixels for which it meets data."""
    channels = merge([window.channels])
    terms = window.horizontal.taps * window.channels.extent
    is_long = _is_long(values, window.vertical.taps * terms)
    by_taps = is_long and terms > PART_TERMS
    by_rows = is_long and not by_taps

    def row(counter: Offset, carried: list[ir.Value]) -> list[ir.Value]:
        return _added(carried, lambda sums: taps(counter, sums), by_rows)

    def taps(counter: Offset, carried: list[ir.Value]) -> list[ir.Value]:
        start = advance(tile.cursor, window.row_taps, counter)
        for tap in range(window.horizontal.taps):
            pixels = [p for p, taps in enumerate(shape.column_taps) if tap in taps]
            moved = tile.at(advance(start, window.column_taps, tap))

            def steps(part: TileShape, chosen: list[ir.Value], moved=moved) -> list[ir.Value]:
                return _added(chosen, lambda sums: _reduce(part, moved, channels, sums), by_taps)

            carried = _for_pixels(shape, pixels, carried, steps)
        return carried

    return loop(*bounds, 1, row, values)


def _for_pixels(shape: TileShape, pixels: Sequence[int], values: list[ir.Value], emit) -> list:
    """`emit` for some of the pixels and their accumulators; the others stay as they are."""
    if not pixels:
        return values
    vectors = len(shape.vectors)
    places = [p * vectors + v for p in pixels for v in range(vectors)]
    done = dict(zip(places, emit(shape.only(pixels), [values[i] for i in places]), strict=True))
    return [done.get(i, value) for i, value in enumerate(values)]


def _reduce(
    shape: TileShape,
    tile: Tile,
    dims: list[Dim],
    values: list[ir.Value],
    bounds: Bounds | None = None,
) -> list[ir.Value]:
    """Loops over `dims`; `bounds` of the first, all of it by default."""
    if not _is_long(values, prod(dim.extent for dim in dims)):
        return _loops(shape, tile, dims, values, bounds)
    dim, *inner = dims
    terms = prod(other.extent for other in inner)
    if not _is_long(values, terms):
        return in_parts(
            dim.extent,
            terms,
            values,
            lambda start, end, sums: _loops(shape, tile, dims, sums, (start, end)),
            bounds,
        )

    def iteration(counter: Offset, carried: list[ir.Value]) -> list[ir.Value]:
        return _reduce(shape, tile.at(advance(tile.cursor, dim, counter)), inner, carried)

    return loop(*(bounds or (0, dim.extent)), 1, iteration, values)


def in_parts(
    extent: int,
    terms: int,
    values: list[ir.Value],
    reduce: Callable[[Offset, Offset, list[ir.Value]], Sequence[ir.Value]],
    bounds: Bounds | None = None,
) -> list[ir.Value]:
    """`values` and `reduce(start, end, sums)` of all iterations, `terms` in each, part by part if
    they are many. bounds: of the iterations, `extent` at most."""
    lower, upper = bounds or (Offset(), Offset(None, extent))
    if not _is_long(values, extent * terms):
        return list(reduce(lower, upper, values))
    size = _part_size(extent, max(1, PART_TERMS // terms))
    are_equal = bounds is None and extent % size == 0

    def part(start: Offset, carried: list[ir.Value]) -> list[ir.Value]:
        end = start + size if are_equal else minimum(start + size, upper)
        return _added(carried, lambda sums: reduce(start, end, sums))

    return loop(lower, upper, size, part, values)


def _part_size(extent: int, most: int) -> int:
    """Of equal parts of `extent`, or `most` if these would be short."""
    parts = -(-extent // most)
    equal = (extent // n for n in range(parts, 2 * parts + 1) if extent % n == 0)
    return next(equal, most)


def _is_long(values: Sequence[ir.Value], terms: int) -> bool:
    return terms >= LONG_SUM and not is_integer(values[0].type)


def _added(
    values: Sequence[ir.Value],
    sums: Callable[[list[ir.Value]], Sequence[ir.Value]],
    apart: bool = True,
) -> list[ir.Value]:
    """`values` and the sums of some more terms, which are added up apart or to the values."""
    if not apart:
        return list(sums(list(values)))
    zeros = [_zeros(value) for value in values]
    return [add(value, sum_) for value, sum_ in zip(values, sums(zeros), strict=True)]


def _zeros(like: ir.Value) -> ir.Value:
    type_ = ir.VectorType(like.type)
    return splat_constant(ir.FloatAttr.get(type_.element_type, 0.0), type_.shape[0])


def _loops(
    shape: TileShape,
    tile: Tile,
    dims: list[Dim],
    values: list[ir.Value],
    bounds: Bounds | None = None,
) -> list[ir.Value]:
    """One loop for each of `dims`."""
    if not dims:
        return accumulate(shape, tile, values)
    dim, *inner = dims

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        return _loops(shape, tile.at(advance(tile.cursor, dim, counter)), inner, carried)

    if not inner and bounds is None and dim.extent <= UNROLLED_STEPS:
        for step in range(dim.extent):
            values = list(iteration(Offset(None, step), values))
        return values
    return loop(*(bounds or (0, dim.extent)), 1, iteration, values)


def accumulate(shape: TileShape, tile: Tile, values: list[ir.Value]) -> list[ir.Value]:
    """One reduction element: the side with fewer registers is loaded first and held."""
    pixels, vectors = range(len(shape.pixels)), range(len(shape.vectors))
    values = list(values)
    for operand, offset in shape.prefetched:
        tile.prefetch(operand, offset)

    sums = values[0].type

    def scalar(p: int, image: int = INPUT) -> ir.Value:
        return widened(tile.load_scalar(image, shape.pixels[p][image]), sums)

    def weights(v: int) -> ir.Value:
        lane = shape.vectors[v]
        return tile.load(WEIGHTS, lane.offsets[WEIGHTS], lane.width)

    def add_product(p: int, v: int, scalar_: ir.Value) -> None:
        at = p * len(vectors) + v
        broadcast = splat(scalar_, shape.vectors[v].width)
        values[at] = multiply_add(broadcast, weights(v), values[at])

    if len(vectors) <= len(pixels):
        for v in vectors:
            weights(v)
        for p in pixels:
            held = scalar(p)
            for v in vectors:
                is_own = v and shape.again is not None
                add_product(p, v, scalar(p, shape.again) if is_own else held)
        return values
    scalars = [scalar(p) for p in pixels]
    for v in vectors:
        for p in pixels:
            add_product(p, v, scalars[p])
    return values
