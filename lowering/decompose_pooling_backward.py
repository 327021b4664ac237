"""Gradients of average pooling: every window gives its pixels equal parts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.convolution_phases import Phase, phases
from mlir_npu.lowering.decompose_pooling import window_counts
from mlir_npu.lowering.decompose_transposed_convolution import padded, spread
from mlir_npu.lowering.decomposition_table import aten, decomposes
from mlir_npu.lowering.support.rules import pair


@decomposes(aten.avg_pool2d_backward.default)
def avg_pool2d_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    kernel = pair(kernel_size)
    stride, padding = pair(stride or kernel), pair(padding)
    windows = zip(x.shape[2:], kernel, stride, padding, strict=True)
    counts = [window_counts(*window, ceil_mode, count_include_pad) for window in windows]
    share = grad / (divisor_override or _divisor(counts, x))
    tiled = [k * out == n for k, out, n in zip(kernel, grad.shape[2:], x.shape[2:], strict=True)]
    if kernel == stride and all(tiled) and not any(padding):
        return _repeated(share, kernel)
    axes = [
        phases(*axis, 1)
        for axis in zip(grad.shape[2:], x.shape[2:], kernel, stride, padding, strict=True)
    ]

    def window_sums(rows: Phase, columns: Phase) -> Tensor:
        window = [len(rows.taps), len(columns.taps)]
        return aten.avg_pool2d(padded(share, rows, columns), window, [1, 1], [0, 0], False, True, 1)

    return spread(window_sums, axes, x.shape)


def _divisor(counts: list[list[int]], x: Tensor) -> Tensor | int:
    """A number where all windows have as many pixels, else an image."""
    areas = [[rows * columns for columns in counts[1]] for rows in counts[0]]
    if len({area for line in areas for area in line}) == 1:
        return areas[0][0]
    with _disable_current_modes():  # a literal of the traced graph, not a traced computation
        return torch.tensor([[areas]], dtype=x.dtype)


def _repeated(x: Tensor, times: Sequence[int]) -> Tensor:
    """Every pixel as a block of rows x columns."""
    n, c, height, width = x.shape
    rows, columns = times
    blocks = aten.expand(
        aten.view(x, [n, c, height, 1, width, 1]), [n, c, height, rows, width, columns]
    )
    return aten.view(blocks.contiguous(), [n, c, height * rows, width * columns])
