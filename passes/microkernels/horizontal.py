"""Reductions across lanes: partial results side by side in a vector, joined at the end.

    for pixels:
        partial = identity of the combiner
        for outer reduction: for lanes by vectors:  partial[i] = region(inputs, partial[i])
        value = combiner(start, join(partial))
        finish(value)

Only regions that end in `combiner(f(inputs), out)` may be reordered so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir, vector
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.analysis.register_tile import VectorUnit, split, vector_pieces
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset, loop
from mlir_npu.passes.microkernels.lanewise import TILE_VECTORS, Cells, Combine
from mlir_npu.passes.microkernels.nest import (
    Cursor,
    Lane,
    Tile,
    advance,
    for_each,
    lanes_along,
    start_of,
)
from mlir_npu.passes.microkernels.region import splat_constant, vector_type

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
    for_each(nest.pixels, start_of(nest.operands), lambda cursor: _emit_pixel(nest, cursor, unit))


def _emit_pixel(nest: Horizontal, cursor: Cursor, unit: VectorUnit) -> None:
    identity = identity_of(nest.combiner, nest.element)
    count = min(TILE_VECTORS, max(1, nest.lanes.extent // unit.lanes))
    width = min(unit.lanes, vector_pieces(nest.lanes.extent, unit.lanes)[0])
    partial = [splat_constant(identity, width) for _ in range(count)]
    rest = splat_constant(identity, 1)
    *partial, rest = _outer(nest, list(nest.outer), cursor, [*partial, rest], width)
    total = _join(nest.combiner, partial)
    total = _apply(nest.combiner, total, rest)
    cell = Lane((0,) * len(nest.operands), 1)
    tile = Tile(nest.operands, nest.lanes.strides, cursor)
    value = _apply(nest.combiner, nest.cells.start(tile, cell), total)
    nest.cells.finish(tile.at(cursor), cell, value)


def identity_of(combiner: str, element: ir.Type) -> ir.Attribute:
    if combiner in IDENTITIES:
        return ir.FloatAttr.get(element, IDENTITIES[combiner])
    bits = ir.IntegerType(element).width
    return ir.IntegerAttr.get(element, INTEGER_IDENTITIES[combiner](bits))


def _outer(
    nest: Horizontal, dims: list[Dim], cursor: Cursor, values: list[ir.Value], width: int
) -> list[ir.Value]:
    if not dims:
        return _lanes(nest, cursor, values, width)
    dim, *inner = dims

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        return _outer(nest, inner, advance(cursor, dim, counter), carried, width)

    return loop(0, dim.extent, 1, iteration, values)


def _lanes(nest: Horizontal, cursor: Cursor, values: list[ir.Value], width: int) -> list[ir.Value]:
    """All vectors of the lane loop; what is left over goes into the last value, one by one."""
    *partial, rest = values
    step = width * len(partial)
    none = (0,) * len(nest.operands)

    def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        tile = Tile(nest.operands, nest.lanes.strides, advance(cursor, nest.lanes, counter))
        lanes = lanes_along(nest.lanes, [width] * len(partial), none)
        return [nest.combine(tile, lane, v) for lane, v in zip(lanes, carried, strict=True)]

    def single(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        tile = Tile(nest.operands, nest.lanes.strides, advance(cursor, nest.lanes, counter))
        return [nest.combine(tile, Lane(none, 1), carried[0])]

    main = split(nest.lanes.extent, step)[0].count * step if nest.lanes.extent >= step else 0
    partial = loop(0, main, step, iteration, partial)
    (rest,) = loop(main, nest.lanes.extent, 1, single, [rest])
    return [*partial, rest]


def _join(combiner: str, values: list[ir.Value]) -> ir.Value:
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
