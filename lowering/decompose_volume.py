"""Convolutions and pools over three dimensions, as those over two: frames first, then time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.decompose_pooling import window_counts
from mlir_npu.lowering.decomposition_table import aten, decomposes

Sizes = Sequence[int]


def convolution_3d(
    x: Tensor, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Tensor:
    """The sum over time taps of 2-D convolutions of frames; where the window is one pixel, one 2-D
    convolution over time and pixels."""
    taps, *window = weight.shape[2:]
    if window == [1, 1] and list(stride[1:]) == [1, 1] and not any(padding[1:]):
        return over_time(
            x,
            lambda image: aten.convolution(
                image, aten.squeeze.dim(weight, 4), None, [stride[0], 1], [padding[0], 0],
                [dilation[0], 1], False, [0, 0], groups,
            ),
        )  # fmt: skip
    if padding[0]:
        x = aten.constant_pad_nd(x, [0, 0, 0, 0, padding[0], padding[0]], 0.0)
    reach = (taps - 1) * dilation[0]
    total = None
    for tap in range(taps):
        start = tap * dilation[0]
        frames = aten.slice.Tensor(x, 2, start, x.shape[2] - reach + start, stride[0])
        kernel = aten.select.int(weight, 2, tap)
        part = over_frames(
            frames,
            lambda image, kernel=kernel: aten.convolution(
                image, kernel, None, list(stride[1:]), list(padding[1:]), list(dilation[1:]), False,
                [0, 0], groups,
            ),
        )  # fmt: skip
        total = part if total is None else total + part
    return total


@decomposes(aten.max_pool3d_with_indices.default)
def max_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    dilation: Sizes = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, None]:
    """Maxima of frames, then of time; a support rule sees to it that nobody reads the indices."""
    kernel, step, pad, spread = windows_of(kernel_size, stride, padding, dilation)
    pool = aten.max_pool2d_with_indices
    x = over_frames(
        x, lambda image: pool(image, kernel[1:], step[1:], pad[1:], spread[1:], ceil_mode)[0]
    )
    time = [kernel[0], 1], [step[0], 1], [pad[0], 0], [spread[0], 1]
    return over_time(x, lambda image: pool(image, *time, ceil_mode)[0]), None


@decomposes(aten.avg_pool3d.default)
def avg_pool3d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Sums of frames, then of time, divided by how many elements each window holds."""
    kernel, step, pad, _ = windows_of(kernel_size, stride, padding, (1,))
    sums = over_frames(
        x, lambda image: aten.avg_pool2d(image, kernel[1:], step[1:], pad[1:], ceil_mode, True, 1)
    )
    sums = over_time(
        sums,
        lambda image: aten.avg_pool2d(
            image, [kernel[0], 1], [step[0], 1], [pad[0], 0], ceil_mode, True, 1
        ),
    )
    if divisor_override:
        return sums / divisor_override
    windows = zip(x.shape[-3:], kernel, step, pad, strict=True)
    return sums / elements_of_windows(
        [window_counts(*window, ceil_mode, count_include_pad) for window in windows], x
    )


def elements_of_windows(axes: Sequence[Sequence[int]], like: Tensor) -> Tensor | int:
    """A number where all windows hold as many elements, else a volume of numbers."""
    if all(len(set(counts)) == 1 for counts in axes):
        return axes[0][0] * axes[1][0] * axes[2][0]
    with _disable_current_modes():  # a literal of the traced graph, not a traced computation
        time, rows, columns = (torch.tensor(counts, dtype=like.dtype) for counts in axes)
        return time[:, None, None] * rows[:, None] * columns


def windows_of(kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> list[list[int]]:
    """Each with one value per dimension; without a stride it is that of the window."""
    given = (kernel, stride or kernel, padding, dilation)
    return [list(values) * 3 if len(values) == 1 else list(values) for values in given]


def over_frames(x: Tensor, function) -> Tensor:
    """`function` of images [n * time, channels, height, width], for x [n, channels, time, ...]."""
    n, channels, time, *image = x.shape
    frames = aten.reshape(aten.permute(x, [0, 2, 1, 3, 4]), [n * time, channels, *image])
    out = function(frames)
    return aten.permute(aten.view(out, [n, time, *out.shape[1:]]), [0, 2, 1, 3, 4])


def over_time(x: Tensor, function) -> Tensor:
    """`function` of images [n, channels, time, height * width]."""
    n, channels, time, height, width = x.shape
    out = function(aten.reshape(x, [n, channels, time, height * width]))
    return aten.view(out, [n, out.shape[1], out.shape[2], height, width])
