"""Transforms of Winograd convolution on vectors of channels.

A transform of a window is two passes of one matrix, over its columns and then over its rows. Rows
of the matrix that agree in their even entries and differ in the sign of their odd ones share both
sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from mlir_npu.dialect.bindings import arith, ir, vector
from mlir_npu.passes.analysis.loop_nest import Dim, merge
from mlir_npu.passes.analysis.register_tile import VectorUnit, split, vector_pieces
from mlir_npu.passes.analysis.winograd import Matrix
from mlir_npu.passes.kernels.winograd import method_of
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup
from mlir_npu.passes.microkernels.binding import bind_group, shape_of, strides_of
from mlir_npu.passes.microkernels.buffers import Operand, operand_of
from mlir_npu.passes.microkernels.nest import (
    Cursor,
    Lane,
    Tile,
    for_each,
    for_span,
    lanes_along,
    start_of,
)
from mlir_npu.passes.microkernels.region import splat_constant


def emit_winograd_input(op: ir.Operation, unit: VectorUnit) -> None:
    """Loops (n, y, x) over windows and c over vectors."""
    image, transformed = op.operands
    method = method_of(op)
    m, points = method.outputs, range(method.points)
    n, y, x, c = strides_of(image)
    p, t, d = strides_of(transformed)
    count, height, width, channels = shape_of(image)
    rows, columns = (height - 2) // m, (width - 2) // m
    windows = [
        Dim(count, (n, rows * columns * t)),
        Dim(rows, (m * y, columns * t)),
        Dim(columns, (m * x, t)),
    ]
    operands = (operand_of(image, [n, y, x, c]), operand_of(transformed, [p, t, d]))

    def window(tile: Tile, lane: Lane) -> None:
        source, target = lane.offsets
        taps = [[tile.load(0, source + i * y + j * x, lane.width) for j in points] for i in points]
        for i, row in enumerate(_transform(method.input, taps)):
            for j, value in enumerate(row):
                tile.store(1, target + (i * method.points + j) * p, value)

    _for_windows(operands, windows, Dim(channels, (c, d)), unit, window)


def emit_winograd_output(group: AccumulatorGroup, unit: VectorUnit) -> None:
    """Loops (n, y, u, x, v, ko, ki); the m x m outputs of a window are one step."""
    products, accumulator = group.compute.operands
    method = method_of(group.compute)
    points = range(method.points)
    p, t, ko, ki = strides_of(products)
    extents = shape_of(accumulator)
    _, rows, _, columns, *_ = extents
    source = operand_of(products, [rows * columns * t, columns * t, 0, t, 0, ko, ki])
    bound = bind_group(group, [source], range(len(extents)), extents)
    down, right = bound.dim(2).strides, bound.dim(4).strides

    def window(tile: Tile, lane: Lane) -> None:
        start = lane.offsets[0]

        def read(i: int, j: int) -> ir.Value:
            return tile.load(0, start + (i * method.points + j) * p, lane.width)

        taps = [[read(i, j) for j in points] for i in points]
        for u, row in enumerate(_transform(method.output, taps)):
            for v, value in enumerate(row):
                at = tuple(o + u * d + v * r for o, d, r in zip(lane.offsets, down, right))
                bound.accumulation.add(tile, Lane(at, lane.width), value)

    _for_windows(bound.operands, bound.dims((0, 1, 3, 5)), bound.dim(6), unit, window)


def _for_windows(
    operands: Sequence[Operand],
    windows: Sequence[Dim],
    lanes: Dim,
    unit: VectorUnit,
    emit: Callable[[Tile, Lane], None],
) -> None:
    """`emit` for every window and vector of channels; the last vectors may be narrower."""

    def channels(cursor: Cursor) -> None:
        for span in split(lanes.extent, unit.lanes):
            for_span(span, lanes, cursor, lambda inner, span=span: vectors(inner, span.size))

    def vectors(cursor: Cursor, extent: int) -> None:
        pieces = vector_pieces(extent, unit.lanes)
        for lane in lanes_along(lanes, pieces, [0] * len(operands)):
            emit(Tile(operands, lanes.strides, cursor), lane)

    for_each(merge(windows), start_of(operands), channels)


def _transform(matrix: Matrix, window: list[list[ir.Value]]) -> list[list[ir.Value]]:
    """matrix . window . matrix^T"""
    columns = [_multiply(matrix, column) for column in zip(*window)]
    return [_multiply(matrix, row) for row in zip(*columns)]


def _multiply(matrix: Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
    """The product of the matrix and a vector of registers."""
    sums: dict[tuple, ir.Value | None] = {}

    def half(row: tuple[Fraction, ...], parity: int) -> tuple[ir.Value | None, int]:
        """The sum over the entries of one parity, and its sign."""
        part = tuple(entry if i % 2 == parity else Fraction(0) for i, entry in enumerate(row))
        sign = next((1 if entry > 0 else -1 for entry in part if entry), 1)
        key = tuple(sign * entry for entry in part)
        if key not in sums:
            sums[key] = _combine(key, values)
        return sums[key], sign

    result = []
    for row in matrix:
        (even, even_sign), (odd, odd_sign) = half(row, 0), half(row, 1)
        result.append(_add(even, even_sign, odd, odd_sign))
    return result


def _add(
    left: ir.Value | None, left_sign: int, right: ir.Value | None, right_sign: int
) -> ir.Value:
    """left_sign * left + right_sign * right; one of them may be missing."""
    if left is None or right is None:
        value, sign = (left, left_sign) if right is None else (right, right_sign)
        return value if sign > 0 else arith.NegFOp(value).result
    if left_sign == right_sign:
        total = arith.AddFOp(left, right).result
        return total if left_sign > 0 else arith.NegFOp(total).result
    first, second = (left, right) if left_sign > 0 else (right, left)
    return arith.SubFOp(first, second).result


def _combine(row: tuple[Fraction, ...], values: Sequence[ir.Value]) -> ir.Value | None:
    """The sum of the values times the entries of a row; None if all of these are 0."""
    terms = [(entry, value) for entry, value in zip(row, values) if entry]
    total = None
    for entry, value in sorted(terms, key=lambda term: term[0] != 1):
        total = _accumulated(total, entry, value)
    return total


def _accumulated(total: ir.Value | None, entry: Fraction, value: ir.Value) -> ir.Value:
    """total + entry * value"""
    if total is None:
        return value if entry == 1 else arith.MulFOp(value, _splat(entry, value)).result
    if abs(entry) == 1:
        operation = arith.AddFOp if entry > 0 else arith.SubFOp
        return operation(total, value).result
    return vector.FMAOp(value, _splat(entry, value), total).result


def _splat(number: Fraction, like: ir.Value) -> ir.Value:
    type_ = ir.VectorType(like.type)
    return splat_constant(ir.FloatAttr.get(type_.element_type, float(number)), type_.shape[0])
