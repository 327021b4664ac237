"""Average pooling whose windows count different numbers of elements, and strides that are left
out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.decomposition_table import aten, decomposes


@decomposes(aten.avg_pool2d.default)
def avg_pool2d(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Where windows count different numbers of elements: sums of a padded image, divided by a
    constant image of counts."""
    kernel = _pair(kernel_size)
    given, stride = stride, _pair(stride or kernel)
    padding = _pair(padding)
    axes = [
        window_counts(extent, *window, ceil_mode, count_include_pad)
        for extent, window in zip(
            x.shape[-2:], zip(kernel, stride, padding, strict=True), strict=True
        )
    ]
    overhangs = [
        max(0, (len(counts) - 1) * step + size - (extent + 2 * pad))
        for counts, size, step, pad, extent in zip(
            axes, kernel, stride, padding, x.shape[-2:], strict=True
        )
    ]
    uniform = all(set(counts) == {size} for counts, size in zip(axes, kernel, strict=True))
    if not any(overhangs) and (divisor_override or uniform):
        plain = given and not ceil_mode and count_include_pad
        # Without overhang the modes agree, and torch-mlir counts at run time only in the others.
        return (
            NotImplemented
            if plain
            else aten.avg_pool2d(x, kernel, stride, padding, False, True, divisor_override)
        )
    (top, left), (down, right) = padding, overhangs
    padded = aten.constant_pad_nd(x, [left, left + right, top, top + down], 0.0)
    sums = aten.avg_pool2d(padded, kernel, stride, [0, 0], False, True, 1)
    if divisor_override:
        return sums / divisor_override
    if uniform:
        return sums / (kernel[0] * kernel[1])
    counts = [[rows * columns for columns in axes[1]] for rows in axes[0]]
    with _disable_current_modes():  # a literal of the traced graph, not a traced computation
        divisors = torch.tensor([[counts]], dtype=x.dtype)
    return sums / divisors


@decomposes(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    x: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), *rest: object
) -> tuple[Tensor, Tensor]:
    """Without a stride windows touch each other; torch-mlir takes strides that are written out."""
    if stride:
        return NotImplemented
    return aten.max_pool2d_with_indices(x, kernel_size, kernel_size, *rest)


def _pair(values: Sequence[int]) -> list[int]:
    return list(values) * 2 if len(values) == 1 else list(values)


def window_counts(
    extent: int, size: int, step: int, pad: int, ceil_mode: bool, count_include_pad: bool
) -> list[int]:
    """Elements that each window along one axis divides by, as many as there are windows."""
    span = extent + 2 * pad - size
    windows = (-(-span // step) if ceil_mode else span // step) + 1
    if ceil_mode and (windows - 1) * step >= extent + pad:  # it would start in the right padding
        windows -= 1
    counts = []
    for start in range(-pad, -pad + windows * step, step):
        end = min(start + size, extent + pad)
        counts.append(end - start if count_include_pad else min(end, extent) - max(start, 0))
    return counts
