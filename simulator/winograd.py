"""What the transforms of Winograd convolution do, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.winograd import Matrix
from mlir_npu.passes.kernels.winograd import method_of

Arrays = Sequence[np.ndarray]


def winograd_input(op: ir.Operation) -> Callable[[Arrays], None]:
    method = method_of(op)
    size = (method.points, method.points)

    def transform(arrays: Arrays) -> None:
        image, transformed = arrays
        matrix = _array(method.input, image)
        every = np.lib.stride_tricks.sliding_window_view(image, size, axis=(1, 2))
        windows = every[:, :: method.outputs, :: method.outputs]
        result = np.einsum("ai,bj,nyxcij->abnyxc", matrix, matrix, windows, optimize=True)
        transformed[...] = result.reshape(transformed.shape)

    return transform


def winograd_output(op: ir.Operation) -> Callable[[Arrays], None]:
    method = method_of(op)

    def transform(arrays: Arrays) -> None:
        products, total = arrays
        matrix = _array(method.output, products)
        n, rows, _, columns, _, blocks, block = total.shape
        shape = (method.points, method.points, n, rows, columns, blocks, block)
        windows = products.reshape(shape)
        total += np.einsum("ua,vb,abnyxki->nyuxvki", matrix, matrix, windows, optimize=True)

    return transform


def _array(matrix: Matrix, like: np.ndarray) -> np.ndarray:
    return np.array([[float(entry) for entry in row] for row in matrix], like.dtype)
