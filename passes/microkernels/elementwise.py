"""Elementwise ops, drains on their own, and fills: one pass over the output in its memory order."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim, merge, order_by_stride, unit_dim
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.microkernels.accumulation import apply_region
from mlir_npu.passes.microkernels.binding import operand_maps, shape_of, strides_of
from mlir_npu.passes.microkernels.buffers import Operand, mapped_operand, operand_of
from mlir_npu.passes.microkernels.lanewise import Elementwise, Lanewise, emit_lanewise
from mlir_npu.passes.microkernels.region import splat_constant


def emit_eltwise(op: ir.Operation, unit: VectorUnit) -> None:
    """`npu.eltwise`, or an `npu.drain` whose accumulator is in memory."""
    block = op.regions[0].blocks[0]
    maps = operand_maps(op)
    operands = [mapped_operand(v, m) for v, m in zip(op.operands, maps, strict=True)]
    extents = loop_extents(op, maps)
    last = len(operands) - 1

    def compute(inputs: list[ir.Value], width: int) -> Sequence[ir.Value]:
        return apply_region(block, inputs, width)

    dims = [Dim(e, tuple(o.strides[d] for o in operands)) for d, e in enumerate(extents)]
    emit_over_output(operands, dims, Elementwise(tuple(range(last)), (last,), compute), unit)


def emit_fill(op: ir.Operation, unit: VectorUnit) -> None:
    fill_buffer(op.operands[0], op.attributes["value"], unit)


def fill_buffer(target: ir.Value, value: ir.Attribute, unit: VectorUnit) -> None:
    """Store `value` everywhere in `target`."""
    dims = [Dim(e, (s,)) for e, s in zip(shape_of(target), strides_of(target), strict=True)]
    operand = operand_of(target, strides_of(target))
    cells = Elementwise((), (0,), lambda _, width: [splat_constant(value, width)])
    emit_over_output([operand], dims, cells, unit)


def emit_over_output(
    operands: Sequence[Operand], dims: Sequence[Dim], cells: Elementwise, unit: VectorUnit
) -> None:
    """Loops in the memory order of the last operand; its innermost loop becomes the lanes."""
    ordered = merge(order_by_stride(dims, len(operands) - 1))
    *pixels, lanes = ordered or [unit_dim(len(operands))]
    emit_lanewise(Lanewise(tuple(operands), tuple(pixels), lanes, cells), unit)


def loop_extents(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> list[int]:
    """Extent of every loop, from the operands that are indexed by it directly."""
    extents: list[int | None] = [None] * maps[0].n_dims
    for operand, map_ in zip(op.operands, maps, strict=True):
        for extent, expression in zip(shape_of(operand), map_.results, strict=True):
            if isinstance(expression, ir.AffineDimExpr):
                extents[expression.position] = extent
    if None in extents:
        raise ValueError(f"no operand gives the extent of loop d{extents.index(None)}")
    return extents
