"""The last lane of a contraction where it is alone: its products are summed along the reduction.

A lane that fills no vector costs as much as half a vector of them, so 49 pixels as lanes take 3.5
vectors for 3.06. Where the other factor is contiguous along the reduction, the products of the lane
with it are vectors of their own:

    for steps by vectors:
        for steps of a vector: full vectors of lanes as always
        column = the lane at all these steps
        partial[pixel] += input[pixel, steps] * column
    sum[pixel] = all elements of partial[pixel]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.microkernels.arithmetic import add, multiply_add
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset, loop
from mlir_npu.passes.microkernels.horizontal import join
from mlir_npu.passes.microkernels.lanes import load_lanes
from mlir_npu.passes.microkernels.nest import Tile, advance
from mlir_npu.passes.microkernels.region import splat_constant
from mlir_npu.passes.microkernels.register_reduction import (
    INPUT,
    WEIGHTS,
    TileShape,
    in_parts,
)

Steps = Callable[[TileShape, Tile, list[ir.Value]], Sequence[ir.Value]]


def has_single_lane(
    operands: Sequence[Operand], lanes: Dim, reduction: Sequence[Dim], width: int
) -> bool:
    """Whether a lane is left over, and vectors of `width` steps of the reduction can be read."""
    if lanes.extent < width or lanes.extent % 2 == 0 or len(reduction) != 1:
        return False
    (steps,) = reduction
    is_float = all(isinstance(operands[index].element, ir.F32Type) for index in (INPUT, WEIGHTS))
    return is_float and steps.strides[INPUT] == 1 and steps.extent % width == 0


def reduce_with_single_lane(
    dim: Dim, width: int, shape: TileShape, tile: Tile, values: Sequence[ir.Value], step: Steps
) -> list[ir.Value]:
    """Accumulators after all steps of `dim`, pixel by pixel, those of the single lane last.

    `step(shape, tile, sums)`: one step of the reduction for full vectors.
    """
    *vectors, single = shape.vectors
    full = replace(shape, vectors=tuple(vectors))
    pixels, count = range(len(shape.pixels)), len(vectors)
    sums = [values[p * (count + 1) + v] for p in pixels for v in range(count)]
    zero = splat_constant(_zero(values[-1]), width)

    def chunk(counter: Offset, carried: list[ir.Value]) -> list[ir.Value]:
        at = advance(tile.cursor, dim, counter)

        def one(inner: Offset, main: list[ir.Value]) -> Sequence[ir.Value]:
            return step(full, tile.at(advance(at, dim, inner)), main)

        main = loop(0, width, 1, one, carried[: len(sums)])
        place = at[WEIGHTS] + single.offsets[WEIGHTS]
        column = load_lanes(tile.operands[WEIGHTS], place, dim.strides[WEIGHTS], width)
        rows = [
            load_lanes(tile.operands[INPUT], at[INPUT] + pixel[INPUT], 1, width)
            for pixel in shape.pixels
        ]
        partial = [
            multiply_add(row, column, value)
            for row, value in zip(rows, carried[len(sums) :], strict=True)
        ]
        return [*main, *partial]

    def chunks(start: Offset, end: Offset, carried: list[ir.Value]) -> list[ir.Value]:
        return loop(start.times(width), end.times(width), width, chunk, carried)

    done = in_parts(dim.extent // width, width, [*sums, *[zero] * len(pixels)], chunks)
    result: list[ir.Value] = []
    for p in pixels:
        start = values[p * (count + 1) + count]
        total = add(start, join("arith.addf", [done[len(sums) + p]]))
        result += [*done[p * count : (p + 1) * count], total]
    return result


def _zero(value: ir.Value) -> ir.Attribute:
    return ir.FloatAttr.get(ir.VectorType(value.type).element_type, 0.0)
