"""Copies whose source and target are contiguous along different dimensions.

Blocks are loaded along the source, transposed in registers, and stored along the target. Blocks
that do not divide an extent overlap: the last one ends with it, and copies some elements again. A
few elements side by side, such as the colours of pixels, are interleaved or taken apart instead.

    for outer dims: for rows by block: for columns by block:
        vectors = load block along the columns (of the source)
        vectors = transpose(vectors)
        store vectors along the rows (of the target)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir_npu.dialect.bindings import arith, ir, scf, vector
from mlir_npu.passes.analysis.loop_nest import Dim, merge, order_by_stride
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.elementwise import emit_over_output
from mlir_npu.passes.microkernels.emit import Offset, index_constant, loop
from mlir_npu.passes.microkernels.lanes import load_lanes, store_lanes
from mlir_npu.passes.microkernels.lanewise import Elementwise
from mlir_npu.passes.microkernels.nest import Cursor, advance, extent_of, for_each, start_of

SOURCE, TARGET = 0, 1
# Side of the squares that are transposed in registers; and where a vector of f32 is a cache line,
# which takes longer to write in halves than these larger squares take to exchange.
SQUARE, LINE_SQUARE = 8, 16
# A block is as wide as a cache line, so that lines are read and written whole.
LARGEST_BLOCK = 16
# Fewer elements side by side than this are interleaved.
SMALLEST_SQUARE = 4
# Elements of a group of lanes that instructions exchange within: 128 bits of f32.
GROUP = 4
F32_BITS = 32


def is_transposed(dims: Sequence[Dim]) -> bool:
    """Whether both sides are contiguous, along different dimensions that are wide enough."""
    merged = merge(dims)
    rows, columns = _unit(merged, TARGET), _unit(merged, SOURCE)
    if rows is None or columns is None or rows == columns:
        return False
    narrow = [d for d in (rows, columns) if d.symbol is None and d.extent < SMALLEST_SQUARE]
    return not narrow or _is_interleaved(rows, columns)


def emit_transposed(operands: Sequence[Operand], dims: Sequence[Dim], unit: VectorUnit) -> None:
    merged = merge(order_by_stride(dims, TARGET))
    rows, columns = _unit(merged, TARGET), _unit(merged, SOURCE)
    outer = [d for d in merged if d not in (rows, columns)]
    emit = _interleave if _is_interleaved(rows, columns) else _emit_plane
    _where_wide(
        [rows, columns],
        lambda: for_each(
            outer, start_of(operands), lambda c: emit(operands, rows, columns, c, unit)
        ),
        lambda: emit_over_output(operands, merged, _COPY, unit),
    )


_COPY = Elementwise((0,), (1,), lambda inputs, _: inputs)


def _where_wide(
    dims: Sequence[Dim], emit: Callable[[], None], otherwise: Callable[[], None]
) -> None:
    """`emit`, where extents that are only known at run time are those of a block at least."""
    wide = None
    for dim in (d for d in dims if d.symbol is not None):
        enough = arith.CmpIOp(
            arith.CmpIPredicate.uge, extent_of(dim).materialise(), index_constant(SQUARE)
        ).result
        wide = enough if wide is None else arith.AndIOp(wide, enough).result
    if wide is None:
        emit()
        return
    branch = scf.IfOp(wide, has_else=True)
    for block, body in ((branch.then_block, emit), (branch.else_block, otherwise)):
        with ir.InsertionPoint(block):
            body()
            scf.YieldOp([])


def _emit_plane(
    operands: Sequence[Operand], rows: Dim, columns: Dim, cursor: Cursor, unit: VectorUnit
) -> None:
    row_first = _is_row_first(rows, columns)
    first, second = (rows, columns) if row_first else (columns, rows)

    def line(at: Cursor, size: int) -> None:
        def block(corner: Cursor, other: int) -> None:
            height, width = (size, other) if row_first else (other, size)
            _emit_block(operands, rows, columns, height, width, corner, unit)

        _for_blocks(second, at, block)

    _for_blocks(first, cursor, line)


def _is_row_first(rows: Dim, columns: Dim) -> bool:
    """Whether lines of the source are the farther apart: they are finished one after the other.

    Lines a power of two apart share a set of the cache, which has room for few.
    """
    return columns.strides[TARGET] <= rows.strides[SOURCE]


def _emit_block(
    operands: Sequence[Operand],
    rows: Dim,
    columns: Dim,
    height: int,
    width: int,
    at: Cursor,
    unit: VectorUnit,
) -> None:
    square = min(height, width, _largest_square(operands[TARGET], unit))
    corners = [(r, c) for r in range(0, height, square) for c in range(0, width, square)]
    if not _is_row_first(rows, columns):
        corners.sort(key=lambda corner: corner[1])
    for r, c in corners:
        corner = advance(advance(at, rows, r), columns, c)
        _emit_square(operands, rows, columns, square, corner)


def _largest_square(operand: Operand, unit: VectorUnit) -> int:
    is_line = unit.lanes == LINE_SQUARE and operand.element.width == F32_BITS
    return LINE_SQUARE if is_line else min(SQUARE, _power_of_two(unit.lanes))


def _emit_square(
    operands: Sequence[Operand], rows: Dim, columns: Dim, square: int, at: Cursor
) -> None:
    values = [
        load_lanes(operands[SOURCE], at[SOURCE] + r * rows.strides[SOURCE], 1, square)
        for r in range(square)
    ]
    for c, value in enumerate(transpose(values)):
        store_lanes(value, operands[TARGET], at[TARGET] + c * columns.strides[TARGET], 1)


def _for_blocks(dim: Dim, cursor: Cursor, body: Callable[[Cursor, int], None]) -> None:
    """`body(cursor, size)` for blocks along `dim`; the last one ends where `dim` does."""
    if dim.symbol is not None:
        _for_blocks_of_any_number(dim, cursor, body)
        return
    size = min(LARGEST_BLOCK, _power_of_two(dim.extent))
    rest = dim.extent % size

    def iteration(counter: Offset, _: list[ir.Value]) -> list[ir.Value]:
        body(advance(cursor, dim, counter), size)
        return []

    loop(0, dim.extent - rest, size, iteration)
    if rest:
        last = min(size, max(SMALLEST_SQUARE, 2 * _power_of_two(rest - 1) if rest > 1 else 1))
        body(advance(cursor, dim, dim.extent - last), last)


def _for_blocks_of_any_number(
    dim: Dim, cursor: Cursor, body: Callable[[Cursor, int], None]
) -> None:
    extent = extent_of(dim)

    def iteration(counter: Offset, _: list[ir.Value]) -> list[ir.Value]:
        last = (extent + -SQUARE).materialise()
        first = Offset(arith.MinUIOp(counter.materialise(), last).result)
        body(advance(cursor, dim, first), SQUARE)
        return []

    loop(0, extent, SQUARE, iteration)


def _is_interleaved(rows: Dim, columns: Dim) -> bool:
    """Whether one side has few elements side by side and is dense, and the other is contiguous."""
    few, stride = min(
        (rows, columns.strides[TARGET]), (columns, rows.strides[SOURCE]), key=lambda d: d[0].extent
    )
    static = rows.symbol is None and columns.symbol is None
    return static and few.extent < SMALLEST_SQUARE and stride == few.extent


def _interleave(
    operands: Sequence[Operand], rows: Dim, columns: Dim, cursor: Cursor, unit: VectorUnit
) -> None:
    """Vectors of several rows to the same elements one by one, or the reverse."""
    apart = columns.extent < rows.extent
    few, many = (columns, rows) if apart else (rows, columns)
    count, planes = few.extent, TARGET if apart else SOURCE

    def emit_block(at: Cursor, size: int) -> None:
        steps = [few.strides[side] if side == planes else size for side in (SOURCE, TARGET)]
        values = [
            load_lanes(operands[SOURCE], at[SOURCE] + n * steps[SOURCE], 1, size)
            for n in range(count)
        ]
        for n in range(count):
            if apart:
                picked = [lane * count + n for lane in range(size)]
            else:
                picked = [(e % count) * size + e // count for e in range(n * size, (n + 1) * size)]
            place = at[TARGET] + n * steps[TARGET]
            store_lanes(_pick(values, picked), operands[TARGET], place, 1)

    _for_blocks(many, cursor, emit_block)


def _pick(values: Sequence[ir.Value], picked: Sequence[int]) -> ir.Value:
    """The elements `picked` of all `values` one after the other."""
    size = ir.VectorType(values[0].type).shape[0]
    result = _shuffle(values[0], values[1], [p if p < 2 * size else 0 for p in picked])
    for number in range(2, len(values)):
        mask = [
            size + p - number * size if number * size <= p < (number + 1) * size else lane
            for lane, p in enumerate(picked)
        ]
        result = _shuffle(result, values[number], mask)
    return result


def transpose(values: Sequence[ir.Value]) -> list[ir.Value]:
    """Transpose n vectors of n lanes, n a power of two.

    First within groups of lanes, by interleaving the low and the high halves of the groups of two
    vectors, then groups as a whole, by taking the even and the odd ones of two vectors.
    """
    rows, size = list(values), len(values)
    group = min(GROUP, size)
    inner = [1 << bit for bit in reversed(range(group.bit_length() - 1))]
    outer = [1 << bit for bit in range(group.bit_length() - 1, size.bit_length() - 1)]
    for distance, mask in (*((d, _halves) for d in inner), *((d, _alternating) for d in outer)):
        low, high = mask(size, group)
        for r in range(size):
            if not r & distance:
                a, b = rows[r], rows[r + distance]
                rows[r], rows[r + distance] = _shuffle(a, b, low), _shuffle(a, b, high)
    return rows


def _halves(size: int, group: int) -> tuple[list[int], list[int]]:
    """Masks that interleave the low, and the high halves of the groups of two vectors."""
    low = [
        first + lane + side
        for first in range(0, size, group)
        for lane in range(group // 2)
        for side in (0, size)
    ]
    return low, [lane + group // 2 for lane in low]


def _alternating(size: int, group: int) -> tuple[list[int], list[int]]:
    """Masks that take the even, and the odd groups of two vectors."""
    low = [first + lane for first in range(0, 2 * size, 2 * group) for lane in range(group)]
    return low, [lane + group for lane in low]


def _shuffle(a: ir.Value, b: ir.Value, mask: list[int]) -> ir.Value:
    return vector.ShuffleOp(a, b, ir.DenseI64ArrayAttr.get(mask)).result


def _unit(dims: Sequence[Dim], side: int) -> Dim | None:
    """The dimension along which one side is contiguous."""
    return next((d for d in dims if d.strides[side] == 1), None)


def _power_of_two(number: int) -> int:
    """The largest power of two that is not above `number`."""
    return 1 << (number.bit_length() - 1)
