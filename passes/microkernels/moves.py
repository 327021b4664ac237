"""`npu.dma_start` as vectorised copies: plain, re-laid-out, or padded.

A padded move copies the source to where it lands and fills only the border around it, slab by slab:
of every dimension what lies before and after the landing box, within the box in outer ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.microkernels.binding import integers, shape_of, strides_of
from mlir_npu.passes.microkernels.buffers import extent_along, operand_of
from mlir_npu.passes.microkernels.elementwise import emit_over_output
from mlir_npu.passes.microkernels.emit import Offset, index_constant, offset_of
from mlir_npu.passes.microkernels.lanewise import Elementwise
from mlir_npu.passes.microkernels.region import splat_constant
from mlir_npu.passes.microkernels.transposes import emit_transposed, is_transposed


@dataclass(frozen=True)
class _Box:
    """Where the source lands along one target dimension: `start`, `extent`, within `room`."""

    start: Offset
    extent: Offset
    room: int


def emit_dma(op: ir.Operation, unit: VectorUnit) -> None:
    source, target, *low = op.operands
    order = integers(op, "permutation")
    boxes = [
        _Box(offset_of(start), extent_along(source, dim), room)
        for start, dim, room in zip(
            low or [index_constant(0)] * len(order), order, shape_of(target), strict=True
        )
    ]
    _copy(source, target, order, boxes, unit)
    if low:
        _fill_border(target, boxes, op.attributes["pad_value"], unit)


def _copy(
    source: ir.Value, target: ir.Value, order: list[int], boxes: list[_Box], unit: VectorUnit
) -> None:
    from_strides, to_strides = strides_of(source), strides_of(target)
    from_strides = [from_strides[dim] for dim in order]
    shift = Offset()
    for box, stride in zip(boxes, to_strides, strict=True):
        shift = shift + box.start.times(stride)
    operands = [operand_of(source, from_strides), operand_of(target, to_strides, shift=shift)]
    dims = [
        _dim(box.extent, strides)
        for box, strides in zip(boxes, zip(from_strides, to_strides, strict=True), strict=True)
    ]
    if _is_empty(dims):
        return
    if is_transposed(dims):
        emit_transposed(operands, dims, unit)
        return
    cells = Elementwise((0,), (1,), lambda inputs, _: inputs)
    emit_over_output(operands, dims, cells, unit)


def _fill_border(
    target: ir.Value, boxes: list[_Box], value: ir.Attribute, unit: VectorUnit
) -> None:
    for dim, box in enumerate(boxes):
        end = box.start + box.extent
        _fill_slab(target, boxes, dim, Offset(), box.start, value, unit)
        after = Offset(None, box.room) + end.times(-1)
        _fill_slab(target, boxes, dim, end, after, value, unit)


def _fill_slab(
    target: ir.Value,
    boxes: list[_Box],
    dim: int,
    start: Offset,
    extent: Offset,
    value: ir.Attribute,
    unit: VectorUnit,
) -> None:
    """Fill `extent` from `start` on along `dim`: the box in outer dimensions, all of inner ones."""
    strides = strides_of(target)
    shift, dims = start.times(strides[dim]), []
    for other, (box, stride) in enumerate(zip(boxes, strides, strict=True)):
        if other < dim:
            shift = shift + box.start.times(stride)
            dims.append(_dim(box.extent, (stride,)))
        else:
            size = extent if other == dim else Offset(None, box.room)
            dims.append(_dim(size, (stride,)))
    if _is_empty(dims):
        return
    cells = Elementwise((), (0,), lambda _, width: [splat_constant(value, width)])
    emit_over_output([operand_of(target, strides, shift=shift)], dims, cells, unit)


def _dim(extent: Offset, strides: tuple[int, ...]) -> Dim:
    if extent.value is None:
        return Dim(extent.constant, strides)
    return Dim(1, strides, extent.materialise())


def _is_empty(dims: list[Dim]) -> bool:
    return any(dim.symbol is None and dim.extent == 0 for dim in dims)
