"""Transposed convolutions over three dimensions, and gradients of convolutions and pools over them,
as those over two."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mlir_npu.lowering.convolution_phases import Phase, phases
from mlir_npu.lowering.decompose_convolution_weights import weight_gradient
from mlir_npu.lowering.decompose_pooling import window_counts
from mlir_npu.lowering.decompose_transposed_convolution import (
    interleaved,
    padded,
    transposed_convolution,
)
from mlir_npu.lowering.decompose_volume import (
    convolution_3d,
    elements_of_windows,
    over_frames,
    over_time,
    windows_of,
)
from mlir_npu.lowering.decomposition_table import aten, decomposes
from mlir_npu.lowering.max_pool_gradient import max_pool2d_backward, max_pool3d_backward

Sizes = Sequence[int]
_ONE_COLUMN = Phase((0,), 1, 0, 0)


def transposed_convolution_3d(
    x: Tensor,
    weight: Tensor,
    out_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """For every time tap the frames that it gives; then each moment's sum of its taps."""
    by_tap = []
    for tap in range(weight.shape[2]):
        kernel = aten.select.int(weight, 2, tap)
        by_tap.append(
            over_frames(
                x,
                lambda image, kernel=kernel: transposed_convolution(
                    image, kernel, out_size[1:], stride[1:], padding[1:], dilation[1:], groups
                ),
            )
        )
    n, channels, time, *image = by_tap[0].shape
    axis = phases(time, out_size[0], len(by_tap), stride[0], padding[0], dilation[0])
    flat = [aten.reshape(part, [n, channels, time, image[0] * image[1]]) for part in by_tap]
    moments = [_sum_of_taps(flat, phase) for phase in axis if phase.taps]
    if not moments:  # every tap lies in the padding
        return aten.expand(aten.scalar_tensor(0.0), [n, channels, *out_size])
    out = interleaved(moments, axis, 2)
    if out.shape[2] != out_size[0]:
        out = aten.slice.Tensor(out, 2, 0, out_size[0])
    return aten.view(out, [n, channels, *out_size])


def _sum_of_taps(by_tap: Sequence[Tensor], phase: Phase) -> Tensor:
    reach = (len(phase.taps) - 1) * phase.dilation
    total = None
    for place, tap in enumerate(phase.taps):
        part = padded(by_tap[tap], phase, _ONE_COLUMN)
        start = place * phase.dilation
        if reach:
            part = aten.slice.Tensor(part, 2, start, part.shape[2] - reach + start)
        total = part if total is None else total + part
    return total


def convolution_3d_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    groups: int,
    wants_input: bool,
    wants_weight: bool,
) -> tuple[Tensor | None, Tensor | None]:
    by_input = by_weight = None
    if wants_input and transposed:
        by_input = convolution_3d(grad, weight, stride, padding, dilation, groups)
        for dim in (2, 3, 4):
            if by_input.shape[dim] != x.shape[dim]:
                by_input = aten.slice.Tensor(by_input, dim, 0, x.shape[dim])
    elif wants_input:
        by_input = transposed_convolution_3d(
            grad, weight, x.shape[2:], stride, padding, dilation, groups
        )
    if wants_weight:
        volume, windows = (grad, x) if transposed else (x, grad)
        by_weight = _weight_gradient_3d(
            volume, windows, weight.shape, stride, padding, dilation, groups
        )
    return by_input, by_weight


def _weight_gradient_3d(
    x: Tensor,
    grad: Tensor,
    shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """Time tap by time tap the gradient of a 2-D convolution of the frames that the tap meets."""
    if padding[0]:
        x = aten.constant_pad_nd(x, [0, 0, 0, 0, padding[0], padding[0]], 0.0)
    reach = (grad.shape[2] - 1) * stride[0] + 1
    by_tap = []
    for tap in range(shape[2]):
        start = tap * dilation[0]
        frames = aten.slice.Tensor(x, 2, start, start + reach, stride[0])
        by_tap.append(
            weight_gradient(
                _frames(frames),
                _frames(grad),
                [*shape[:2], *shape[3:]],
                stride[1:],
                padding[1:],
                dilation[1:],
                groups,
            )
        )
    return aten.cat([aten.unsqueeze(part, 2) for part in by_tap], 2)


def _frames(x: Tensor) -> Tensor:
    n, channels, time, *image = x.shape
    return aten.reshape(aten.permute(x, [0, 2, 1, 3, 4]), [n * time, channels, *image])


@decomposes(aten.avg_pool3d_backward.default)
def avg_pool3d_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Each window's part for one element, given to moments, then to the pixels of their frames."""
    kernel, step, pad, _ = windows_of(kernel_size, stride, padding, (1,))
    axes = [
        window_counts(*axis, ceil_mode, count_include_pad)
        for axis in zip(x.shape[2:], kernel, step, pad, strict=True)
    ]
    share = grad / (divisor_override or elements_of_windows(axes, x))
    n, channels, time, *image = x.shape
    pixels = share.shape[3] * share.shape[4]
    moments = over_time(
        share,
        lambda part: aten.avg_pool2d_backward(
            part, x.new_empty([n, channels, time, pixels]), [kernel[0], 1], [step[0], 1],
            [pad[0], 0], ceil_mode, True, 1,
        ),
    )  # fmt: skip
    return over_frames(
        moments,
        lambda part: aten.avg_pool2d_backward(
            part, x.new_empty([n * time, channels, *image]), kernel[1:], step[1:], pad[1:],
            ceil_mode, True, 1,
        ),
    )  # fmt: skip


@decomposes(max_pool3d_backward)
def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Tensor:
    """To the maxima of frames that are those of time, then to the pixels that are those of frames:
    the first of equal ones is the same as that of whole windows."""
    frames = [list(values[1:]) for values in (kernel, stride, padding, dilation)]
    time = [kernel[0], 1], [stride[0], 1], [padding[0], 0], [dilation[0], 1]
    maxima = over_frames(
        x, lambda image: aten.max_pool2d_with_indices(image, *frames, ceil_mode)[0]
    )
    by_time = _along_time(grad, maxima, time, ceil_mode)
    n, channels, depth, *image = x.shape
    pixels = max_pool2d_backward(_frames(by_time), _frames(x), *frames, ceil_mode)
    return aten.permute(aten.view(pixels, [n, depth, channels, *image]), [0, 2, 1, 3, 4])


def _along_time(grad: Tensor, x: Tensor, window: tuple[list[int], ...], ceil_mode: bool) -> Tensor:
    n, channels, depth, *image = x.shape
    pixels = image[0] * image[1]
    given = aten.reshape(grad, [n, channels, grad.shape[2], pixels])
    moments = aten.reshape(x, [n, channels, depth, pixels])
    return aten.view(max_pool2d_backward(given, moments, *window, ceil_mode), list(x.shape))
