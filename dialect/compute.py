"""Matrix-unit and pooling ops. All accumulate into their last operand; the drain reads it out."""

# No postponed annotations here: ext reads the classes themselves.
from collections.abc import Sequence
from typing import Any

from mlir_npu.dialect.attributes import ACC, SRAM, DenseArrayAttr
from mlir_npu.dialect.base import TileOp, error
from mlir_npu.dialect.bindings import ext, ir
from mlir_npu.dialect.checks import (
    check_accumulator_type,
    check_extent,
    check_halo,
    check_memref,
    check_positive,
    check_same_element_type,
    check_space,
)
from mlir_npu.dialect.effects import AccumulateEffects

POOL_KINDS = ("max", "sum")


class Conv2DOp(TileOp, name="conv2d", traits=[AccumulateEffects]):
    """Convolve a tile and add the result to the accumulators.

        accumulator[n, y, x, ko, ki] +=
            sum over r, s, c: input[n, y*sy + r*dy, x*sx + s*dx, c] * weights[ko, r, s, c, ki]

    Shapes: input N x H x W x C, weights KO x R x S x C x KI, accumulator N x OY x OX x KO x KI;
    (sy, sx) = `strides`, (dy, dx) = `dilations`. Output channel k stands at ko = k / KI,
    ki = k mod KI. The input holds the halo: H >= (OY - 1)*sy + (R - 1)*dy + 1, W alike; what
    lies beyond is not read. There is no padding here: the move that brought the tile made it.
    Element types: input and weights have one type T; the accumulator has T, or f32 for f16 and
    bf16, i32 for i8. Products and sums are made in the accumulator's type, in any order.
    Unit: matrix. Every move into input or weights has been waited for before the op.
    """

    input: ext.Operand[Any]
    weights: ext.Operand[Any]
    accumulator: ext.Operand[Any]
    strides: DenseArrayAttr
    dilations: DenseArrayAttr

    def verify_op(self) -> bool:
        if not _check_contraction(self, (self.input, self.weights, self.accumulator), (4, 5, 5)):
            return False
        n, height, width, channels = _shape(self.input)
        blocks, rows, columns, depth, block = _shape(self.weights)
        out_n, out_height, out_width, out_blocks, out_block = _shape(self.accumulator)
        return (
            check_extent(self, "batch of input and accumulator differ", n, out_n)
            and check_extent(self, "channels of input and weights differ", channels, depth)
            and check_extent(
                self, "channel blocks of weights and accumulator differ", blocks, out_blocks
            )
            and check_extent(self, "block size of weights and accumulator differ", block, out_block)
            and _check_window(self, (height, width), (out_height, out_width), (rows, columns))
        )


class DepthwiseConv2DOp(TileOp, name="depthwise_conv2d", traits=[AccumulateEffects]):
    """Convolve every channel of a tile with a filter of its own and add to the accumulators.

        accumulator[n, y, x, c] +=
            sum over r, s: input[n, y*sy + r*dy, x*sx + s*dx, c] * weights[r, s, c]

    Shapes: input N x H x W x C, weights R x S x C, accumulator N x OY x OX x C; (sy, sx) =
    `strides`, (dy, dx) = `dilations`. Halo, padding and element types are those of npu.conv2d.
    Unit: vector, which reaches the accumulators for this op. Every move into input or weights
    has been waited for before the op.
    """

    input: ext.Operand[Any]
    weights: ext.Operand[Any]
    accumulator: ext.Operand[Any]
    strides: DenseArrayAttr
    dilations: DenseArrayAttr

    def verify_op(self) -> bool:
        if not _check_contraction(self, (self.input, self.weights, self.accumulator), (4, 3, 4)):
            return False
        n, height, width, channels = _shape(self.input)
        rows, columns, depth = _shape(self.weights)
        out_n, out_height, out_width, out_channels = _shape(self.accumulator)
        return (
            check_extent(self, "batch of input and accumulator differ", n, out_n)
            and check_extent(self, "channels of input and weights differ", channels, depth)
            and check_extent(
                self, "channels of input and accumulator differ", channels, out_channels
            )
            and _check_window(self, (height, width), (out_height, out_width), (rows, columns))
        )


class MatmulOp(TileOp, name="matmul", traits=[AccumulateEffects]):
    """Multiply two matrix tiles and add the product to the accumulators.

        accumulator[m, no, ni] += sum over c: lhs[m, c] * rhs[no, c, ni]

    Shapes: lhs M x C, rhs NO x C x NI, accumulator M x NO x NI. Column n of the product stands
    at no = n / NI, ni = n mod NI. Element types are those of npu.conv2d, lhs and rhs in the
    place of input and weights. Unit: matrix. Every move into lhs or rhs has been waited for
    before the op.
    """

    lhs: ext.Operand[Any]
    rhs: ext.Operand[Any]
    accumulator: ext.Operand[Any]

    def verify_op(self) -> bool:
        names = ("lhs", "rhs", "accumulator")
        if not _check_contraction(self, (self.lhs, self.rhs, self.accumulator), (2, 3, 3), names):
            return False
        rows, depth = _shape(self.lhs)
        blocks, rhs_depth, block = _shape(self.rhs)
        out_rows, out_blocks, out_block = _shape(self.accumulator)
        return (
            check_extent(self, "rows of lhs and accumulator differ", rows, out_rows)
            and check_extent(self, "depth of lhs and rhs differ", depth, rhs_depth)
            and check_extent(
                self, "column blocks of rhs and accumulator differ", blocks, out_blocks
            )
            and check_extent(self, "block size of rhs and accumulator differ", block, out_block)
        )


class BatchMatmulOp(TileOp, name="batch_matmul", traits=[AccumulateEffects]):
    """Multiply pairs of matrix tiles and add the products to the accumulators.

        accumulator[p, m, no, ni] += sum over c: lhs[p, m, c] * rhs[p, no, c, ni]

    Shapes: lhs P x M x C, rhs P x NO x C x NI, accumulator P x M x NO x NI. Each p is an npu.matmul
    of its own, with the same columns and element types. Unit: matrix. Every move into lhs or rhs
    has been waited for before the op.
    """

    lhs: ext.Operand[Any]
    rhs: ext.Operand[Any]
    accumulator: ext.Operand[Any]

    def verify_op(self) -> bool:
        names = ("lhs", "rhs", "accumulator")
        if not _check_contraction(self, (self.lhs, self.rhs, self.accumulator), (3, 4, 4), names):
            return False
        batch, rows, depth = _shape(self.lhs)
        rhs_batch, blocks, rhs_depth, block = _shape(self.rhs)
        out_batch, out_rows, out_blocks, out_block = _shape(self.accumulator)
        return (
            check_extent(self, "batch of lhs and rhs differ", batch, rhs_batch)
            and check_extent(self, "batch of lhs and accumulator differ", batch, out_batch)
            and check_extent(self, "rows of lhs and accumulator differ", rows, out_rows)
            and check_extent(self, "depth of lhs and rhs differ", depth, rhs_depth)
            and check_extent(
                self, "column blocks of rhs and accumulator differ", blocks, out_blocks
            )
            and check_extent(self, "block size of rhs and accumulator differ", block, out_block)
        )


class Pool2DOp(TileOp, name="pool2d", traits=[AccumulateEffects]):
    """Reduce windows of a tile into the accumulators, by maximum or sum.

        accumulator[n, y, x, c] = kind(accumulator[n, y, x, c],
            input[n, y*sy + r*dy, x*sx + s*dx, c])    for all r < R, s < S

    Shapes: input N x H x W x C, accumulator N x OY x OX x C; (R, S) = `window`, (sy, sx) =
    `strides`, (dy, dx) = `dilations`; `kind` is "max" or "sum". The halo is that of npu.conv2d.
    Padding is the neutral element, made by the move; an average is a sum that the drain scales.
    "max" gives NaN if one of the values is NaN. Element types: those of npu.conv2d, without
    weights. Unit: vector, which reaches the accumulators for this op. Every move into input has
    been waited for before the op.
    """

    input: ext.Operand[Any]
    accumulator: ext.Operand[Any]
    kind: ir.StringAttr
    window: DenseArrayAttr
    strides: DenseArrayAttr
    dilations: DenseArrayAttr

    def verify_op(self) -> bool:
        if self.kind.value not in POOL_KINDS:
            return error(
                self, f"'kind' must be one of {', '.join(POOL_KINDS)}, got '{self.kind.value}'"
            )
        operands, names = (self.input, self.accumulator), ("input", "accumulator")
        if not _check_contraction(self, operands, (4, 4), names):
            return False
        n, height, width, channels = _shape(self.input)
        out_n, out_height, out_width, out_channels = _shape(self.accumulator)
        window = list(self.window)
        return (
            check_extent(self, "batch of input and accumulator differ", n, out_n)
            and check_extent(
                self, "channels of input and accumulator differ", channels, out_channels
            )
            and check_positive(self, "window", window, 2)
            and _check_window(self, (height, width), (out_height, out_width), window)
        )


def _shape(value: ir.Value) -> list[int]:
    return list(ir.MemRefType(value.type).shape)


def _check_contraction(
    op: ir.OpView,
    operands: Sequence[ir.Value],
    ranks: Sequence[int],
    names: Sequence[str] = ("input", "weights", "accumulator"),
) -> bool:
    for operand, rank, name in zip(operands, ranks, names):
        if not check_memref(op, operand, name, rank):
            return False
    for operand, name in zip(operands[:-1], names):
        if not check_space(op, operand, name, SRAM):
            return False
    return (
        check_space(op, operands[-1], names[-1], ACC)
        and check_same_element_type(op, operands[:-1], names)
        and check_accumulator_type(op, operands[0], operands[-1])
    )


def _check_window(
    op: ir.OpView, extents: Sequence[int], outputs: Sequence[int], window: Sequence[int]
) -> bool:
    strides, dilations = list(op.strides), list(op.dilations)
    return (
        check_positive(op, "strides", strides, 2)
        and check_positive(op, "dilations", dilations, 2)
        and check_halo(op, extents, outputs, window, strides, dilations)
    )
