"""Depthwise convolution and pooling: windows over an image, channel by channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import merge
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup
from mlir_npu.passes.microkernels.arithmetic import add, maximum, multiply_add
from mlir_npu.passes.microkernels.binding import bind_group, integers, shape_of, strides_of
from mlir_npu.passes.microkernels.buffers import Operand, operand_of
from mlir_npu.passes.microkernels.lanewise import Combine, Lanewise, emit_lanewise
from mlir_npu.passes.microkernels.nest import Lane, Tile, start_of
from mlir_npu.passes.microkernels.padding import (
    padding_to_leave_out,
    source_strides,
    window_axes,
)
from mlir_npu.passes.microkernels.stencil import Stencil, emit_stencil, is_small

WINDOWS = frozenset({"npu.depthwise_conv2d", "npu.pool2d"})


def with_padding(group: AccumulatorGroup) -> AccumulatorGroup:
    """The group of a small window, with the move that pads its image if that is not needed."""
    compute = group.compute
    if compute.name not in WINDOWS or not is_small(_taps(compute)):
        return group
    return replace(group, padding=padding_to_leave_out(group))


def emit_depthwise_conv2d(group: AccumulatorGroup, unit: VectorUnit) -> None:
    """Loops (n, y, x, c, r, s)."""
    weights = group.compute.operands[1]
    r, s, c = strides_of(weights)
    inputs = [_image(group), operand_of(weights, [0, 0, 0, c, r, s])]

    def combine(tile: Tile, lane: Lane, value: ir.Value) -> ir.Value:
        pixel = tile.load(0, lane.offsets[0], lane.width)
        weight = tile.load(1, lane.offsets[1], lane.width)
        return multiply_add(pixel, weight, value)

    _emit(group, inputs, combine, unit)


def emit_pool2d(group: AccumulatorGroup, unit: VectorUnit) -> None:
    """Loops (n, y, x, c, r, s). NaN wins in a max pool, as arith.maximumf has it."""
    kind = ir.StringAttr(group.compute.attributes["kind"]).value
    operation = {"max": maximum, "sum": add}[kind]

    def combine(tile: Tile, lane: Lane, value: ir.Value) -> ir.Value:
        return operation(value, tile.load(0, lane.offsets[0], lane.width))

    _emit(group, [_image(group)], combine, unit)


def _emit(
    group: AccumulatorGroup,
    inputs: Sequence[Operand],
    combine: Combine,
    unit: VectorUnit,
) -> None:
    taps = _taps(group.compute)
    bound = bind_group(group, inputs, range(4), [*shape_of(group.compute.operands[-1]), *taps])
    if not is_small(taps):
        pixels, reduction = bound.dims((0, 1, 2)), bound.dims((4, 5))
        nest = (tuple(merge(pixels)), bound.dim(3), bound.accumulation, tuple(merge(reduction)))
        emit_lanewise(Lanewise(bound.operands, *nest, combine), unit)
        return
    vertical, horizontal = window_axes(group.compute, taps, group.padding)
    start = start_of(bound.operands)
    if group.padding is not None:
        # The first window begins in padding that is not there.
        _, y, x, _ = source_strides(group.compute, group.padding)
        first = start[0] + vertical.low.times(-y) + horizontal.low.times(-x)
        start = (first, *start[1:])
    stencil = Stencil(
        bound.operands, *bound.dims(range(6)), vertical, horizontal, bound.accumulation, combine
    )
    emit_stencil(stencil, start, unit)


def _image(group: AccumulatorGroup) -> Operand:
    """The image as it lies on chip, or where a padding move would take it from."""
    source = (group.padding or group.compute).operands[0]
    n, y, x, c = strides_of(source)
    if group.padding is not None:
        n, y, x, c = source_strides(group.compute, group.padding)
    (sy, sx), (dy, dx) = integers(group.compute, "strides"), integers(group.compute, "dilations")
    return operand_of(source, [n, sy * y, sx * x, c, dy * y, dx * x])


def _taps(compute: ir.Operation) -> list[int]:
    """Rows and columns of the window."""
    if compute.name == "npu.pool2d":
        return integers(compute, "window")
    return shape_of(compute.operands[1])[:2]
