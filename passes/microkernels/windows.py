"""Depthwise convolution and pooling: windows over an image, channel by channel."""

from __future__ import annotations

from mlir_npu.dialect.bindings import arith, ir, vector
from mlir_npu.passes.analysis.loop_nest import merge
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup
from mlir_npu.passes.microkernels.binding import (
    BoundGroup,
    bind_group,
    integers,
    shape_of,
    strides_of,
)
from mlir_npu.passes.microkernels.buffers import Operand, operand_of
from mlir_npu.passes.microkernels.lanewise import Combine, Lanewise, emit_lanewise
from mlir_npu.passes.microkernels.nest import Lane, Tile


def emit_depthwise_conv2d(group: AccumulatorGroup, unit: VectorUnit) -> None:
    """Loops (n, y, x, c, r, s)."""
    _, weights, accumulator = group.compute.operands
    r, s, c = strides_of(weights)
    inputs = [_image(group.compute), operand_of(weights, [0, 0, 0, c, r, s])]
    extents = [*shape_of(accumulator), *shape_of(weights)[:2]]

    def multiply_add(tile: Tile, lane: Lane, value: ir.Value) -> ir.Value:
        pixel = tile.load(0, lane.offsets[0], lane.width)
        weight = tile.load(1, lane.offsets[1], lane.width)
        return vector.FMAOp(pixel, weight, value).result

    _emit(bind_group(group, inputs, range(4), extents), multiply_add, unit)


def emit_pool2d(group: AccumulatorGroup, unit: VectorUnit) -> None:
    """Loops (n, y, x, c, r, s). NaN wins in a max pool, as arith.maximumf has it."""
    kind = ir.StringAttr(group.compute.attributes["kind"]).value
    operation = {"max": arith.MaximumFOp, "sum": arith.AddFOp}[kind]
    extents = [*shape_of(group.compute.operands[-1]), *integers(group.compute, "window")]

    def combine(tile: Tile, lane: Lane, value: ir.Value) -> ir.Value:
        return operation(value, tile.load(0, lane.offsets[0], lane.width)).result

    _emit(bind_group(group, [_image(group.compute)], range(4), extents), combine, unit)


def _image(compute: ir.Operation) -> Operand:
    n, y, x, c = strides_of(compute.operands[0])
    (sy, sx), (dy, dx) = integers(compute, "strides"), integers(compute, "dilations")
    return operand_of(compute.operands[0], [n, sy * y, sx * x, c, dy * y, dx * x])


def _emit(bound: BoundGroup, combine: Combine, unit: VectorUnit) -> None:
    nest = Lanewise(
        bound.operands,
        tuple(merge(bound.dims((0, 1, 2)))),
        bound.dim(3),
        bound.accumulation,
        tuple(merge(bound.dims((4, 5)))),
        combine,
        shares_loads=True,
    )
    emit_lanewise(nest, unit)
