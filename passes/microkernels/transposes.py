"""Copies whose source and target are contiguous along different dimensions.

Square blocks are loaded along the source, transposed in registers by rounds of exchanging halves,
and stored along the target. What does not fill a block is copied element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir, vector
from mlir_npu.passes.analysis.loop_nest import Dim, merge, order_by_stride
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.elementwise import emit_over_output
from mlir_npu.passes.microkernels.lanes import load_lanes, store_lanes
from mlir_npu.passes.microkernels.lanewise import Elementwise
from mlir_npu.passes.microkernels.nest import Cursor, for_each, start_of

SOURCE, TARGET = 0, 1
# Bigger blocks need more registers than they save shuffles.
LARGEST_BLOCK = 8


def is_transposed(dims: Sequence[Dim]) -> bool:
    """Whether blocks pay: static extents, and both sides contiguous along different dimensions."""
    if any(d.symbol is not None for d in dims):
        return False
    found = [_unit(merge(dims), side) for side in (SOURCE, TARGET)]
    return None not in found and found[0] != found[1] and min(d.extent for d in found) >= 4


def emit_transposed(operands: Sequence[Operand], dims: Sequence[Dim], unit: VectorUnit) -> None:
    merged = merge(order_by_stride(dims, TARGET))
    rows, columns = _unit(merged, TARGET), _unit(merged, SOURCE)
    outer = [d for d in merged if d not in (rows, columns)]
    block = _power_of_two(min(LARGEST_BLOCK, unit.lanes, rows.extent, columns.extent))

    def plane(cursor: Cursor) -> None:
        _emit_plane(operands, rows, columns, block, cursor)

    for_each(outer, start_of(operands), plane)
    for main, rest in ((rows, columns), (columns, rows)):
        _emit_rest(operands, outer, main, rest, block, unit, whole=main is rows)


def _emit_plane(
    operands: Sequence[Operand], rows: Dim, columns: Dim, block: int, cursor: Cursor
) -> None:
    row_blocks, column_blocks = (
        Dim(d.extent // block, tuple(s * block for s in d.strides)) for d in (rows, columns)
    )

    def emit_block(at: Cursor) -> None:
        values = [
            load_lanes(operands[SOURCE], at[SOURCE] + r * rows.strides[SOURCE], 1, block)
            for r in range(block)
        ]
        for c, value in enumerate(transpose(values)):
            store_lanes(value, operands[TARGET], at[TARGET] + c * columns.strides[TARGET], 1)

    for_each([row_blocks, column_blocks], cursor, emit_block)


def _emit_rest(
    operands: Sequence[Operand],
    outer: list[Dim],
    main: Dim,
    rest: Dim,
    block: int,
    unit: VectorUnit,
    *,
    whole: bool,
) -> None:
    """The strip of `rest` that fills no block, over all of `main` or only its full blocks."""
    left = rest.extent % block
    if left == 0:
        return
    skipped = rest.extent - left
    shifted = [
        Operand(o.flat, o.start + skipped * s, o.strides, o.element)
        for o, s in zip(operands, rest.strides, strict=True)
    ]
    extent = main.extent if whole else main.extent - main.extent % block
    dims = [*outer, Dim(extent, main.strides), Dim(left, rest.strides)]
    emit_over_output(shifted, dims, Elementwise((0,), (1,), lambda inputs, _: inputs), unit)


def transpose(values: Sequence[ir.Value]) -> list[ir.Value]:
    """Transpose n vectors of n lanes, n a power of two: exchange halves, then quarters, ..."""
    rows, distance = list(values), len(values) // 2
    while distance:
        for r in range(len(rows)):
            if r & distance:
                continue
            rows[r], rows[r + distance] = _exchange(rows[r], rows[r + distance], distance)
        distance //= 2
    return rows


def _exchange(upper: ir.Value, lower: ir.Value, distance: int) -> tuple[ir.Value, ir.Value]:
    """Trade lanes of `lower` without the `distance` bit for lanes of `upper` with it."""
    width = ir.VectorType(upper.type).shape[0]
    first = [lane if not lane & distance else width + lane - distance for lane in range(width)]
    second = [lane + distance if not lane & distance else width + lane for lane in range(width)]
    return _shuffle(upper, lower, first), _shuffle(upper, lower, second)


def _shuffle(a: ir.Value, b: ir.Value, mask: list[int]) -> ir.Value:
    return vector.ShuffleOp(a, b, ir.DenseI64ArrayAttr.get(mask)).result


def _unit(dims: Sequence[Dim], side: int) -> Dim | None:
    """The dimension along which one side is contiguous."""
    return next((d for d in dims if d.strides[side] == 1), None)


def _power_of_two(number: int) -> int:
    """The largest power of two that is not above `number`."""
    return 1 << (number.bit_length() - 1)
