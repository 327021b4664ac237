"""Convolutions between images whose columns lie side by side: vectors run over columns.

    acc[channel, column] += weight[channel, tap, input] * image[input, row, column]

It is the same contraction with its factors the other way round: the weights are the scalars, and a
row of the image is what vectors are loaded from. The last vector of a row that is no multiple of a
vector begins earlier instead of being shorter, and computes some columns again.
"""

from __future__ import annotations

from dataclasses import replace

from mlir_npu.passes.analysis.loop_nest import Dim, merge, unit_dim
from mlir_npu.passes.analysis.register_tile import CpuVectors
from mlir_npu.passes.microkernels.binding import BoundGroup
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.contraction import Contraction, emit_contraction
from mlir_npu.passes.microkernels.lanes import STRIDES_OF_VECTORS

# Loops of conv2d.
IMAGES, ROWS, COLUMNS, BLOCKS, LANES = range(5)


def has_planes(bound: BoundGroup, unit: CpuVectors) -> bool:
    """Whether vectors can run over the columns of image and result, and all else is constant."""
    image, _, *others, result = bound.operands
    is_new = bound.accumulation.initial is not None and bound.accumulation.memory is None
    return (
        is_new
        and bound.extents[COLUMNS] >= unit.lanes
        and image.strides[COLUMNS] in STRIDES_OF_VECTORS
        and result.strides[COLUMNS] == 1
        and all(operand.strides[COLUMNS] == 0 for operand in others)
    )


def emit_planes(bound: BoundGroup, unit: CpuVectors) -> None:
    full, rest = divmod(bound.extents[COLUMNS], unit.lanes)
    _emit_vectors(bound, 0, full, unit)
    if rest:
        _emit_vectors(bound, bound.extents[COLUMNS] - unit.lanes, 1, unit)


def _emit_vectors(bound: BoundGroup, start: int, count: int, unit: CpuVectors) -> None:
    """`count` vectors of columns from `start` on, for all rows and channels."""
    image, weights, *others = (_from_column(operand, start) for operand in bound.operands)
    bound = replace(bound, operands=(weights, image, *others))
    column = bound.dim(COLUMNS)
    vectors = Dim(count, tuple(unit.lanes * stride for stride in column.strides))
    contraction = Contraction(
        bound.operands,
        tuple(merge(bound.dims((LANES,)))),
        vectors if count > 1 else unit_dim(len(bound.operands)),
        Dim(unit.lanes, column.strides),
        tuple(merge(bound.dims((5, 6, 7)))),
        bound.accumulation,
        tuple(bound.dims((IMAGES, BLOCKS, ROWS))),
    )
    emit_contraction(contraction, unit)


def _from_column(operand: Operand, column: int) -> Operand:
    return replace(operand, start=operand.start + column * operand.strides[COLUMNS])
