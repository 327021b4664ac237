"""A Winograd convolution on tiles as npu ops: into the domain of products, the products, back."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.attributes import ACC, SRAM, with_space
from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.dialect.compute import BatchMatmulOp
from mlir_npu.dialect.movement import FillOp
from mlir_npu.dialect.winograd import WinogradInputOp, WinogradOutputOp
from mlir_npu.passes.analysis.winograd import Algorithm, algorithm
from mlir_npu.passes.kernels.views import collapsed


def expand_winograd(op: ir.Operation) -> None:
    """Build the ops of a `winograd_conv2d` generic at the insertion point."""
    image, weights, *_, accumulator = op.operands
    outputs, element = op.attributes["npu.outputs"], image.type.element_type
    flat = collapsed(weights, [[0, 1], [2], [3], [4]])
    points, blocks, depth, lanes = flat.type.shape
    count, rows, _, columns, *_ = accumulator.type.shape
    windows = count * rows * columns
    transformed = _allocate((points, windows, depth), element, SRAM)
    products = _allocate((points, windows, blocks, lanes), element, ACC)
    WinogradInputOp(image, transformed, outputs)
    FillOp(products, ir.FloatAttr.get(element, 0.0))
    BatchMatmulOp(transformed, flat, products)
    WinogradOutputOp(products, accumulator, outputs)


def method_of(op: ir.Operation) -> Algorithm:
    """The algorithm that a winograd_input or winograd_output is part of."""
    return algorithm(ir.IntegerAttr(op.attributes["outputs"]).value)


def _allocate(shape: Sequence[int], element: ir.Type, space: str) -> ir.Value:
    return memref.AllocOp(with_space(ir.MemRefType.get(shape, element), space), [], []).result
