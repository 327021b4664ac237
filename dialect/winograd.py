"""Transforms of Winograd convolution: into the domain of products, and back."""

# No postponed annotations here: ext reads the classes themselves.
from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_npu.dialect.attributes import ACC, SRAM
from mlir_npu.dialect.base import TileOp, error
from mlir_npu.dialect.bindings import ext, ir
from mlir_npu.dialect.checks import (
    DYNAMIC,
    check_extent,
    check_memref,
    check_same_element_type,
    check_space,
)
from mlir_npu.dialect.effects import AccumulateEffects, OverwriteEffects

OUTPUTS = (2, 4)


class WinogradInputOp(TileOp, name="winograd_input", traits=[OverwriteEffects]):
    """Transform the overlapping windows of a tile for a Winograd convolution, F(m x m, 3 x 3).

        transformed[a*(m+2) + b, (n*TY + y)*TX + x, c] =
            sum over i, j: B[a, i] * B[b, j] * input[n, y*m + i, x*m + j, c]

    Shapes: input N x (TY*m + 2) x (TX*m + 2) x C, transformed (m+2)^2 x N*TY*TX x C; m = `outputs`
    is 2 or 4. B is (m+2) x (m+2) and follows from m + 1 points, 0, 1, -1 for m = 2 and 0, 3/4,
    -3/4, 3/2, -3/2 for m = 4: row a < m+1 holds the coefficients of the product of all (z - q), q
    a point other than point a, and the last row those of the product over all points; column i is
    the coefficient of z^i. Element types: all of one type of floats. Unit: vector. Every move into
    input, and every move out of transformed, has been waited for before the op.
    """

    input: ext.Operand[Any]
    transformed: ext.Operand[Any]
    outputs: ir.IntegerAttr

    def verify_op(self) -> bool:
        operands, names = (self.input, self.transformed), ("input", "transformed")
        return (
            _check_operands(self, operands, names, (4, 3), SRAM)
            and _check_outputs(self)
            and self._check_extents()
        )

    def _check_extents(self) -> bool:
        n, height, width, channels = _shape(self.input)
        points, windows, depth = _shape(self.transformed)
        m = self.outputs.value
        for axis, extent in (("y", height), ("x", width)):
            if extent != DYNAMIC and (extent < m + 2 or (extent - 2) % m):
                return error(
                    self,
                    f"input extent along {axis} must be a multiple of {m}, plus 2, got {extent}",
                )
        rows, columns = (e if e == DYNAMIC else (e - 2) // m for e in (height, width))
        count = _count(n, rows, columns)
        return (
            check_extent(self, "points of transformed and 'outputs' differ", points, (m + 2) ** 2)
            and check_extent(self, "windows of transformed and input differ", windows, count)
            and check_extent(self, "channels of transformed and input differ", depth, channels)
        )


class WinogradOutputOp(TileOp, name="winograd_output", traits=[AccumulateEffects]):
    """Transform products back into windows of outputs and add them to the accumulators.

        accumulator[n, y, u, x, v, ko, ki] += sum over a, b:
            A[u, a] * A[v, b] * products[a*(m+2) + b, (n*TY + y)*TX + x, ko, ki]

    Shapes: products (m+2)^2 x N*TY*TX x KO x KI, accumulator N x TY x m x TX x m x KO x KI; m =
    `outputs` is 2 or 4. A is m x (m+2): A[u, a] is the u-th power of point a of
    npu.winograd_input, and the last column is 0 but for a 1 in its last row. Element types: all of
    one type of floats. Unit: vector, which reaches the accumulators for this op; it starts when
    the matrix unit has written products.
    """

    products: ext.Operand[Any]
    accumulator: ext.Operand[Any]
    outputs: ir.IntegerAttr

    def verify_op(self) -> bool:
        operands, names = (self.products, self.accumulator), ("products", "accumulator")
        return (
            _check_operands(self, operands, names, (4, 7), ACC)
            and _check_outputs(self)
            and self._check_extents()
        )

    def _check_extents(self) -> bool:
        points, windows, blocks, lanes = _shape(self.products)
        n, rows, down, columns, right, out_blocks, out_lanes = _shape(self.accumulator)
        m, count = self.outputs.value, _count(n, rows, columns)
        return (
            check_extent(self, "points of products and 'outputs' differ", points, (m + 2) ** 2)
            and check_extent(self, "rows of a window and 'outputs' differ", down, m)
            and check_extent(self, "columns of a window and 'outputs' differ", right, m)
            and check_extent(self, "windows of products and accumulator differ", windows, count)
            and check_extent(
                self, "channel blocks of products and accumulator differ", blocks, out_blocks
            )
            and check_extent(
                self, "block size of products and accumulator differ", lanes, out_lanes
            )
        )


def _shape(value: ir.Value) -> list[int]:
    return list(ir.MemRefType(value.type).shape)


def _count(*extents: int) -> int:
    """How many windows there are, DYNAMIC if that is not known."""
    return DYNAMIC if DYNAMIC in extents else prod(extents)


def _check_operands(
    op: ir.OpView,
    operands: Sequence[ir.Value],
    names: Sequence[str],
    ranks: Sequence[int],
    space: str,
) -> bool:
    if not all(
        check_memref(op, operand, name, rank) and check_space(op, operand, name, space)
        for operand, name, rank in zip(operands, names, ranks)
    ):
        return False
    element = ir.MemRefType(operands[0].type).element_type
    if not isinstance(element, ir.FloatType):
        return error(op, f"{names[0]} must hold floats, got {element}")
    return check_same_element_type(op, operands, names)


def _check_outputs(op: ir.OpView) -> bool:
    if op.outputs.value in OUTPUTS:
        return True
    return error(op, f"'outputs' must be 2 or 4, got {op.outputs.value}")
