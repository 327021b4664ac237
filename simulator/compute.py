"""What the compute ops do, on NumPy arrays. Each takes an op and gives a function of the arrays of
its operands, which writes the last one in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import integers, string
from mlir_npu.simulator.scalar import region_function
from mlir_npu.simulator.winograd import winograd_input, winograd_output

Arrays = Sequence[np.ndarray]


def compute_function(op: ir.Operation) -> Callable[[Arrays], None]:
    """Raises SimulationError if the op's region holds what NumPy cannot do."""
    if op.name in ("npu.eltwise", "npu.drain", "npu.reduce"):
        return region_function(op)
    return _FUNCTIONS[op.name](op)


def _fill(op: ir.Operation) -> Callable[[Arrays], None]:
    value = op.attributes["value"].value

    def fill(arrays: Arrays) -> None:
        arrays[0][...] = value

    return fill


def _conv2d(op: ir.Operation) -> Callable[[Arrays], None]:
    windows = _windows(op)

    def conv2d(arrays: Arrays) -> None:
        image, weights, total = arrays
        blocks, rows, columns, depth, block = weights.shape
        for r, s, taps in windows(image, total.shape[1:3], (rows, columns)):
            panel = weights[:, r, s].transpose(1, 0, 2).reshape(depth, blocks * block)
            total += _product(taps.reshape(-1, depth), panel, total)

    return conv2d


def _product(left: np.ndarray, right: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Matrix product in the element type and shape of the accumulator."""
    return (left.astype(total.dtype) @ right.astype(total.dtype)).reshape(total.shape)


def _depthwise_conv2d(op: ir.Operation) -> Callable[[Arrays], None]:
    windows = _windows(op)

    def depthwise(arrays: Arrays) -> None:
        image, weights, total = arrays
        for r, s, taps in windows(image, total.shape[1:3], weights.shape[:2]):
            total += taps.astype(total.dtype) * weights[r, s].astype(total.dtype)

    return depthwise


def _matmul(op: ir.Operation) -> Callable[[Arrays], None]:
    def matmul(arrays: Arrays) -> None:
        left, right, total = arrays
        blocks, depth, block = right.shape
        total += _product(left, right.transpose(1, 0, 2).reshape(depth, blocks * block), total)

    return matmul


def _batch_matmul(op: ir.Operation) -> Callable[[Arrays], None]:
    def batch_matmul(arrays: Arrays) -> None:
        left, right, total = arrays
        batch, blocks, depth, block = right.shape
        panels = right.transpose(0, 2, 1, 3).reshape(batch, depth, blocks * block)
        total += _product(left, panels, total)

    return batch_matmul


def _pool2d(op: ir.Operation) -> Callable[[Arrays], None]:
    combine = {"max": np.maximum, "sum": np.add}[string(op, "kind")]
    windows, window = _windows(op), integers(op, "window")

    def pool2d(arrays: Arrays) -> None:
        image, total = arrays
        for _, _, taps in windows(image, total.shape[1:3], window):
            combine(total, taps, out=total)

    return pool2d


_FUNCTIONS = {
    "npu.fill": _fill,
    "npu.conv2d": _conv2d,
    "npu.depthwise_conv2d": _depthwise_conv2d,
    "npu.matmul": _matmul,
    "npu.batch_matmul": _batch_matmul,
    "npu.pool2d": _pool2d,
    "npu.winograd_input": winograd_input,
    "npu.winograd_output": winograd_output,
}


def _windows(op: ir.Operation) -> Callable:
    """For every tap (r, s): the input elements that it meets, one per output."""
    (sy, sx), (dy, dx) = integers(op, "strides"), integers(op, "dilations")

    def windows(image, outputs, taps) -> Iterator[tuple[int, int, np.ndarray]]:
        height, width = outputs
        for r, s in itertools.product(range(taps[0]), range(taps[1])):
            y, x = r * dy, s * dx
            rows = slice(y, y + (height - 1) * sy + 1, sy)
            columns = slice(x, x + (width - 1) * sx + 1, sx)
            yield r, s, image[:, rows, columns]

    return windows
