"""Views of tensors whose memory order the compiler chose."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.decomposition_table import aten, decomposes


@decomposes(aten.view.default, aten._unsafe_view.default)
def view(x: Tensor, size: Sequence[int]) -> Tensor:
    """Inside a region memory order is the compiler's choice, so a view may look at permuted
    tensors."""
    if x.is_contiguous():
        return NotImplemented
    return aten.view(aten.clone(x, memory_format=torch.contiguous_format), size)


@decomposes(aten.pixel_shuffle.default)
def pixel_shuffle(x: Tensor, factor: int) -> Tensor:
    n, channels, height, width = x.shape
    channels //= factor * factor
    split = aten.view(x, [n, channels, factor, factor, height, width])
    moved = aten.permute(split, [0, 1, 4, 2, 5, 3])
    return aten.reshape(moved, [n, channels, height * factor, width * factor])


@decomposes(aten.pixel_unshuffle.default)
def pixel_unshuffle(x: Tensor, factor: int) -> Tensor:
    return aten.reshape(_in_patches(x, [factor, factor]), [
        x.shape[0], x.shape[1] * factor * factor, x.shape[2] // factor, x.shape[3] // factor
    ])  # fmt: skip


@decomposes(aten.im2col.default)
def im2col(x: Tensor, kernel_size: Sequence[int], *_: Sequence[int]) -> Tensor:
    """Patches that touch (a support rule lets no others through)."""
    split = _in_patches(x, kernel_size)
    return aten.reshape(split, [x.shape[0], math.prod(split.shape[1:4]), -1])


@decomposes(aten.col2im.default)
def col2im(
    x: Tensor, output_size: Sequence[int], kernel_size: Sequence[int], *_: Sequence[int]
) -> Tensor:
    """Patches that touch (a support rule lets no others through)."""
    n, channels = x.shape[0], x.shape[1] // math.prod(kernel_size)
    rows, columns = (size // part for size, part in zip(output_size, kernel_size, strict=True))
    split = aten.view(x, [n, channels, *kernel_size, rows, columns])
    return aten.reshape(aten.permute(split, [0, 1, 4, 2, 5, 3]), [n, channels, *output_size])


def _in_patches(x: Tensor, window: Sequence[int]) -> Tensor:
    """[n, channels, height of a patch, width of a patch, rows of patches, columns of patches]"""
    n, channels, height, width = x.shape
    rows, columns = height // window[0], width // window[1]
    split = aten.view(x, [n, channels, rows, window[0], columns, window[1]])
    return aten.permute(split, [0, 1, 3, 5, 2, 4])


@decomposes(aten.slice_scatter.default)
def slice_scatter(
    x: Tensor,
    source: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    extent = x.shape[dim]
    first, last, _ = slice(start, end).indices(extent)
    if last <= first:
        return aten.clone(x)
    if step > 1:
        spread = slice_backward(source, x.shape, dim, first, last, step)
        return aten.where.self(_places(x, dim, first, last, step), spread, x)
    kept = [(0, first), (last, extent)]
    before, after = (
        [aten.slice.Tensor(x, dim, low, high)] if low < high else [] for low, high in kept
    )
    return aten.cat([*before, source, *after], dim)


def _places(x: Tensor, dim: int, first: int, last: int, step: int) -> Tensor:
    """Where a slice is, to be broadcast."""
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    with _disable_current_modes():  # a literal of the traced graph, not a traced computation
        places = torch.zeros(x.shape[dim], dtype=torch.bool)
        places[first:last:step] = True
        return places.view(shape)


@decomposes(aten.select_scatter.default)
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    index %= x.shape[dim]
    return slice_scatter(x, aten.unsqueeze(source, dim % x.dim()), dim, index, index + 1)


@decomposes(aten.constant_pad_nd.default)
def constant_pad(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Negative padding as slices."""
    if min(pad, default=0) >= 0:
        return NotImplemented
    for index, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - index
        if min(low, high) < 0:
            x = aten.slice.Tensor(x, dim, max(-low, 0), x.shape[dim] + min(high, 0))
    kept = [max(side, 0) for side in pad]
    return aten.constant_pad_nd(x, kept, value) if any(kept) else x


@decomposes(aten.slice_backward.default)
def slice_backward(
    grad: Tensor, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    """Zeros between the elements of a slice with steps are a dimension of their own at first."""
    dim %= grad.dim()
    extent, shape = input_sizes[dim], list(grad.shape)
    first = slice(start, end, step).indices(extent)[0]
    if step > 1:
        spread = aten.unsqueeze(grad, dim + 1)
        spread = aten.constant_pad_nd(spread, [0, 0] * (len(shape) - 1 - dim) + [0, step - 1], 0.0)
        shape[dim] *= step
        grad = aten.view(spread, shape)
        if first + shape[dim] > extent:
            shape[dim] = extent - first
            grad = aten.slice.Tensor(grad, dim, 0, shape[dim])
    sides = [0, 0] * (len(shape) - 1 - dim) + [first, extent - first - shape[dim]]
    return aten.constant_pad_nd(grad, sides, 0.0)


@decomposes(aten.select_backward.default)
def select_backward(grad: Tensor, input_sizes: Sequence[int], dim: int, index: int) -> Tensor:
    dim %= len(input_sizes)
    index %= input_sizes[dim]
    return slice_backward(aten.unsqueeze(grad, dim), input_sizes, dim, index, index + 1, 1)


@decomposes(aten.copy.default)
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return aten.clone(aten.expand(source, list(x.shape)))


@decomposes(aten.unbind.int)
def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return [aten.select.int(x, dim, index) for index in range(x.shape[dim])]


@decomposes(aten.stack.default)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return aten.cat([aten.unsqueeze(tensor, dim) for tensor in tensors], dim)


@decomposes(aten.roll.default)
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return aten.reshape(roll(aten.reshape(x, [-1]), shifts, [0]), x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        extent = x.shape[dim]
        if shift % extent == 0:
            continue
        cut = extent - shift % extent
        parts = [aten.slice.Tensor(x, dim, cut, extent), aten.slice.Tensor(x, dim, 0, cut)]
        x = aten.cat(parts, dim)
    return x


@decomposes(aten.squeeze.dims)
def squeeze_dims(x: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted((dim % max(x.dim(), 1) for dim in dims), reverse=True):
        x = aten.squeeze.dim(x, dim)
    return x
