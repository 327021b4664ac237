"""Vectors in and out of flat memory, for any lane stride."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir, memref, vector
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.emit import Offset
from mlir_npu.passes.microkernels.region import splat, vector_type

# Distances of elements that are taken out of vectors.
STRIDES_OF_VECTORS = (1, 2)
# Hint of a prefetch: to the second-level cache, since what is in use fills the first.
SECOND_LEVEL = 2


def load_scalar(operand: Operand, offset: Offset) -> ir.Value:
    return memref.LoadOp(operand.flat, [offset.materialise()]).result


def load_lanes(operand: Operand, offset: Offset, stride: int, width: int) -> ir.Value:
    """`width` elements from `offset` on, `stride` apart; stride 0 repeats one element."""
    if stride == 0:
        return splat(load_scalar(operand, offset), width)
    if stride == 1:
        return vector.LoadOp(
            vector_type(operand.element, width), operand.flat, [offset.materialise()]
        ).result
    if stride == 2 and width > 1:
        return _load_every_other(operand, offset, width)
    elements = [load_scalar(operand, offset + lane * stride) for lane in range(width)]
    return vector.FromElementsOp(vector_type(operand.element, width), elements).result


def _load_every_other(operand: Operand, offset: Offset, width: int) -> ir.Value:
    """Out of two vectors, of which the second ends with the last element that counts."""
    halves = [load_lanes(operand, offset + shift, 1, width) for shift in (0, width - 1)]
    picked = [2 * lane if 2 * lane < width else 2 * lane + 1 for lane in range(width)]
    return vector.ShuffleOp(*halves, ir.DenseI64ArrayAttr.get(picked)).result


def store_lanes(value: ir.Value, operand: Operand, offset: Offset, stride: int) -> None:
    """Store the vector `value` from `offset` on, its lanes `stride` elements apart."""
    if stride == 1:
        vector.StoreOp(value, operand.flat, [offset.materialise()])
        return
    for lane in range(ir.VectorType(value.type).shape[0]):
        element = vector.ExtractOp(value, [], [lane]).result
        memref.StoreOp(element, operand.flat, [(offset + lane * stride).materialise()])


def prefetch(operand: Operand, offset: Offset) -> None:
    """Ask for the cache line at `offset`, which need not be one of the buffer."""
    memref.PrefetchOp(operand.flat, [offset.materialise()], False, SECOND_LEVEL, True)
