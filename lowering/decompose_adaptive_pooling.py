"""Adaptive pooling: as plain pooling where all windows are equal, else axis by axis, window by
window."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, decomposes


@decomposes(aten._adaptive_avg_pool2d.default, aten.adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: Tensor, output_size: Sequence[int]) -> Tensor:
    if list(output_size) == [1, 1]:
        return aten.mean.dim(x, [-2, -1], True)
    if window := equal_windows(x.shape[-2:], output_size):
        return aten.avg_pool2d(x, window, window)
    return _means(x, output_size)


@decomposes(aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(x: Tensor, output_size: Sequence[int]) -> Tensor:
    if window := equal_windows(x.shape[-3:], output_size):
        return aten.avg_pool3d(x, window, window)
    return _means(x, output_size)


@decomposes(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    if window := equal_windows(x.shape[-2:], output_size):
        return aten.max_pool2d_with_indices(x, window, window)
    return NotImplemented


@decomposes(aten.adaptive_max_pool3d.default)
def adaptive_max_pool3d(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    if window := equal_windows(x.shape[-3:], output_size):
        return aten.max_pool3d_with_indices(x, window, window)
    return NotImplemented


@decomposes(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(grad: Tensor, x: Tensor) -> Tensor:
    if window := equal_windows(x.shape[-2:], grad.shape[-2:]):
        return aten.avg_pool2d_backward(grad, x, window, window, [0, 0], False, True, None)
    return _spread(grad, x.shape[-2:])


@decomposes(aten._adaptive_avg_pool3d_backward.default)
def adaptive_avg_pool3d_backward(grad: Tensor, x: Tensor) -> Tensor:
    if window := equal_windows(x.shape[-3:], grad.shape[-3:]):
        return aten.avg_pool3d_backward(grad, x, window, window, [0, 0, 0], False, True, None)
    return _spread(grad, x.shape[-3:])


def equal_windows(sizes: Sequence[int], counts: Sequence[int]) -> list[int] | None:
    """The window, if all are of one size."""
    axes = list(zip(sizes, counts, strict=True))
    if any(not count or extent % count for extent, count in axes):
        return None
    return [extent // count for extent, count in axes]


def _bounds(extent: int, count: int) -> list[tuple[int, int]]:
    """Start and end of each window."""
    return [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]


def _means(x: Tensor, counts: Sequence[int]) -> Tensor:
    if not all(counts):
        return NotImplemented
    for dim, count in enumerate(counts, start=x.dim() - len(counts)):
        windows = [
            aten.mean.dim(aten.slice.Tensor(x, dim, start, end), [dim], True)
            for start, end in _bounds(x.shape[dim], count)
        ]
        x = aten.cat(windows, dim)
    return x


def _spread(grad: Tensor, sizes: Sequence[int]) -> Tensor:
    """Each window gives its elements equal parts; windows overlap."""
    for dim, extent in enumerate(sizes, start=grad.dim() - len(sizes)):
        total = None
        for place, (start, end) in enumerate(_bounds(extent, grad.shape[dim])):
            share = aten.slice.Tensor(grad, dim, place, place + 1) / (end - start)
            shape = [end - start if d == dim else size for d, size in enumerate(grad.shape)]
            around = [0, 0] * (grad.dim() - 1 - dim) + [start, extent - end]
            part = aten.constant_pad_nd(aten.expand(share, shape), around, 0.0)
            total = part if total is None else total + part
        grad = total
    return grad
