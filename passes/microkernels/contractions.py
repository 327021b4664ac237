"""conv2d, matmul and batch_matmul as register-blocked contractions."""

from __future__ import annotations

from dataclasses import replace

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import merge, unit_dim
from mlir_npu.passes.analysis.planes import MOST_INPUTS
from mlir_npu.passes.analysis.register_tile import CpuVectors
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup
from mlir_npu.passes.microkernels.aliasing import users_of, whole_buffer
from mlir_npu.passes.microkernels.axis import Axis, Position
from mlir_npu.passes.microkernels.binding import (
    BoundGroup,
    bind_group,
    integers,
    shape_of,
    strides_of,
)
from mlir_npu.passes.microkernels.buffers import Operand, is_dense, operand_of
from mlir_npu.passes.microkernels.contraction import Contraction, emit_contraction
from mlir_npu.passes.microkernels.emit import Offset
from mlir_npu.passes.microkernels.padding import (
    CHANNELS,
    COLUMNS,
    padding_of,
    padding_to_leave_out,
    source_strides,
    window_axes,
)
from mlir_npu.passes.microkernels.planes import emit_planes, has_planes
from mlir_npu.passes.microkernels.register_reduction import Window


def emit_conv2d(group: AccumulatorGroup, unit: CpuVectors) -> None:
    """Loops (n, y, x, ko, ki, r, s, c)."""
    axes = _padded_axes(group.compute)
    input_, weights, accumulator = group.compute.operands
    image, packed = strides_of(input_), strides_of(weights)
    if group.padding is not None:
        input_, image = group.padding.operands[0], source_strides(group.compute, group.padding)
    (sy, sx), (dy, dx) = integers(group.compute, "strides"), integers(group.compute, "dilations")
    n, y, x, c = image
    ko, r, s, wc, ki = packed
    inputs = [
        operand_of(input_, [n, sy * y, sx * x, 0, 0, dy * y, dx * x, c]),
        operand_of(weights, [0, 0, 0, ko, ki, r, s, wc]),
    ]
    extents = [*shape_of(accumulator), *shape_of(weights)[1:4]]
    bound = bind_group(group, inputs, range(5), extents)
    if group.padding is None and has_planes(bound, unit):
        emit_planes(bound, unit)
        return
    if axes is not None:
        # The last operands, as Window has it.
        positions = (Position((0, sy, 0, 0, 0, 0, 0, 0)), Position((0, 0, sx, 0, 0, 0, 0, 0)))
        bound = replace(bound, operands=(*bound.operands, *positions))
    has_padding, lead = group.padding is None, None
    if not has_padding:
        lead = axes[0].low.times(-y) + axes[1].low.times(-x)
    window = axes and Window(*axes, *bound.dims((5, 6, 7)), has_padding)
    loops = {"pixels": (0, 1, 2), "block": 3, "lanes": 4, "reduction": (5, 6, 7)}
    moved = _moved_from(group.compute, weights)
    _emit(bound, **loops, window=window, moved=moved, lead=lead, unit=unit)


def without_padding(group: AccumulatorGroup, unit: CpuVectors) -> AccumulatorGroup:
    """The group of a convolution with the move that pads its image, if that costs more than it
    saves: where few channels are summed up.

    Tiles of pixels are parts of a row then, so that each has the row taps of its own.
    """
    image, _, accumulator = group.compute.operands
    result = group.last.operands[-1]
    if shape_of(image)[CHANNELS] > MOST_INPUTS or shape_of(accumulator)[COLUMNS] < unit.registers:
        return group
    is_float = isinstance(ir.MemRefType(image.type).element_type, ir.FloatType)
    if not is_float or strides_of(result)[COLUMNS] == 1:
        return group
    return replace(group, padding=padding_to_leave_out(group))


def _padded_axes(compute: ir.Operation) -> tuple[Axis, Axis] | None:
    """Axes of a window that may meet padding."""
    padding = padding_of(compute)
    return padding and window_axes(compute, shape_of(compute.operands[1])[1:3], padding)


def _moved_from(compute: ir.Operation, tile: ir.Value) -> Operand | None:
    """What a move in front of `compute` makes all of `tile` from, if that is one run of memory."""
    for move in users_of(whole_buffer(tile)):
        if move.name != "npu.dma_start" or whole_buffer(move.operands[1]) != whole_buffer(tile):
            continue
        source = move.operands[0]
        if move.block == compute.block and len(move.operands) == 2 and is_dense(source):
            return operand_of(source, [])
    return None


def emit_matmul(group: AccumulatorGroup, unit: CpuVectors) -> None:
    """Loops (m, no, ni, c)."""
    lhs, rhs, accumulator = group.compute.operands
    (m, c), (no, rc, ni) = strides_of(lhs), strides_of(rhs)
    inputs = [operand_of(lhs, [m, 0, 0, c]), operand_of(rhs, [0, no, ni, rc])]
    extents = [*shape_of(accumulator), shape_of(rhs)[1]]
    bound = bind_group(group, inputs, range(3), extents)
    _emit(bound, pixels=(0,), block=1, lanes=2, reduction=(3,), unit=unit)


def emit_batch_matmul(group: AccumulatorGroup, unit: CpuVectors) -> None:
    """Loops (p, m, no, ni, c)."""
    lhs, rhs, accumulator = group.compute.operands
    (lp, m, c), (rp, no, rc, ni) = strides_of(lhs), strides_of(rhs)
    inputs = [operand_of(lhs, [lp, m, 0, 0, c]), operand_of(rhs, [rp, 0, no, ni, rc])]
    extents = [*shape_of(accumulator), shape_of(rhs)[2]]
    bound = bind_group(group, inputs, range(4), extents)
    _emit(bound, batch=(0,), pixels=(1,), block=2, lanes=3, reduction=(4,), unit=unit)


def _emit(
    bound: BoundGroup,
    *,
    batch: tuple[int, ...] = (),
    pixels: tuple[int, ...],
    block: int,
    lanes: int,
    reduction: tuple[int, ...],
    window: Window | None = None,
    moved: Operand | None = None,
    lead: Offset | None = None,
    unit: CpuVectors,
) -> None:
    contraction = Contraction(
        bound.operands,
        tuple(merge(bound.dims(pixels))),
        bound.dim(block) if bound.extents[block] > 1 else unit_dim(len(bound.operands)),
        bound.dim(lanes),
        tuple(merge(bound.dims(reduction))),
        bound.accumulation,
        tuple(bound.dims(batch)),
        window,
        moved,
        lead or Offset(),
    )
    emit_contraction(contraction, unit)
