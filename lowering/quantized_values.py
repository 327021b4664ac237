"""Quantised tensors as integers, and what is computed with them.

Every tensor here is kept as int8 `values` that stand for (values - zero) * scale; unsigned ones are
kept less 128, and so is their zero point, which changes no result. What is exact, step by step:

* products are added up as integers, zero points and padding (with the zero point) included;
* the sum, rounded to float32, is multiplied by float32(scale of the image * scale of the weights);
* whatever follows (bias, residual, activation) is float32 arithmetic, operation by operation;
* quantisation multiplies by float32(1 / scale), rounds half to even, adds the zero point, clamps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import decompose

from mlir_npu.lowering.decomposition_table import aten, per_channel

# What is subtracted from integers of a type to keep them as int8.
SHIFTS = {torch.int8: 0, torch.uint8: 128}


@dataclass(frozen=True)
class Integers:
    """What a quantisation makes: int8 `values`, of which an unsigned tensor holds `shift` more."""

    values: Tensor
    dtype: torch.dtype

    def tensor(self) -> Tensor:
        if (shift := SHIFTS[self.dtype]) == 0:
            return self.values
        return cast(cast(self.values, torch.int32) + shift, self.dtype)


@dataclass(frozen=True)
class Dequantized:
    """(values - zero) * scale as floats that nobody has computed yet.

    axis: the dimension that `scale`, then a tensor, and with it a zero of 0, goes along.
    """

    values: Tensor
    scale: float | Tensor
    zero: int
    axis: int | None = None

    def tensor(self) -> Tensor:
        if self.axis is None:
            floats = cast(self.values, torch.float32)
            return (floats - self.zero if self.zero else floats) * self.scale
        return cast(self.values, torch.float32) * along(self.scale, self.values, self.axis)

    def moved(self, move: Callable[[Tensor], Tensor], axis: int | None = None) -> Dequantized:
        """The same numbers in other places."""
        return replace(self, values=move(self.values), axis=axis)

    @property
    def is_plain(self) -> bool:
        """One positive scale for all elements: larger integers are larger numbers."""
        return self.axis is None and self.scale > 0

    def is_like(self, other: Dequantized) -> bool:
        plain = self.axis is None and other.axis is None
        return plain and (self.scale, self.zero) == (other.scale, other.zero)


def as_tensor(value: object) -> object:
    """What a graph computes: tensors where integers stand for them."""
    return value.tensor() if isinstance(value, (Dequantized, Integers)) else value


def signed(x: Tensor) -> Tensor:
    """The values of int8 or uint8 integers as int8."""
    shift = SHIFTS[x.dtype]
    return cast(cast(x, torch.int32) - shift, torch.int8) if shift else x


def quantize(
    x: Tensor, scale: float, zero: int, low: int, high: int, dtype: torch.dtype
) -> Integers:
    shift = SHIFTS[dtype]
    floats = cast(x, torch.float32)
    return stored(aten.round(floats * (1.0 / scale)) + (zero - shift), low, high, dtype)


def stored(rounded: Tensor, low: int, high: int, dtype: torch.dtype) -> Integers:
    """Whole numbers as int8, clamped. NaN becomes the lowest: it is not kept, as elsewhere."""
    shift = SHIFTS[dtype]
    with decompose({}):
        clamped = aten.clamp(rounded, low - shift, high - shift)
    return Integers(cast(clamped, torch.int8), dtype)


def along(values: Tensor, like: Tensor, axis: int) -> Tensor:
    """One value per index of a dimension, ready to broadcast."""
    return aten.view(values, [-1 if d == axis else 1 for d in range(like.dim())])


def convolution(
    x: Dequantized,
    weight: Dequantized,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Without bias; per output channel, or with one scale for all weights."""
    image, taps = x.values, weight.values
    if any(padding):
        sides = [pad for pad in reversed(padding) for _ in range(2)]
        image = aten.constant_pad_nd(image, sides, x.zero)
    none = [0] * len(padding)
    wide = cast(taps, torch.int32)
    sums = aten.convolution(
        cast(image, torch.int32), wide, None, stride, none, dilation, False, none, groups
    )
    if x.zero:
        dims = list(range(1, taps.dim()))
        sums = sums - per_channel(_sum(wide, dims) * x.zero, sums)
    scale = _product_of_scales(x, weight)
    return cast(sums, torch.float32) * (
        per_channel(scale, sums) if isinstance(scale, Tensor) else scale
    )


def product(x: Dequantized, weight: Dequantized) -> Tensor:
    """Of two matrices; per column, or with one scale for all weights."""
    wide = cast(weight.values, torch.int32)
    sums = aten.mm(cast(x.values, torch.int32), wide)
    if x.zero:
        sums = sums - _sum(wide, [0]) * x.zero
    return cast(sums, torch.float32) * _product_of_scales(x, weight)


def mean(x: Dequantized, dims: Sequence[int], keep: bool) -> Tensor:
    count = int(np.prod([x.values.shape[dim] for dim in dims]))
    sums = _sum(cast(x.values, torch.int32), list(dims), keep)
    return _average(x, sums, count)


def average_pool(
    x: Dequantized, window: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> Tensor:
    """Of windows that all count their padding."""
    image = x.values
    if any(padding):
        image = aten.constant_pad_nd(image, [padding[1]] * 2 + [padding[0]] * 2, x.zero)
    wide = cast(image, torch.int32)
    sums = aten.avg_pool2d(wide, list(window), list(stride), [0, 0], False, True, 1)
    return _average(x, sums, window[0] * window[1])


def _average(x: Dequantized, sums: Tensor, count: int) -> Tensor:
    if x.zero:
        sums = sums - x.zero * count
    return cast(sums, torch.float32) * (x.scale / count)


def _product_of_scales(x: Dequantized, weight: Dequantized) -> float | Tensor:
    if isinstance(weight.scale, Tensor):
        return weight.scale * x.scale
    return float(np.float32(x.scale) * np.float32(weight.scale))


def _sum(x: Tensor, dims: list[int], keep: bool = False) -> Tensor:
    return aten.sum.dim_IntList(x, dims, keep, dtype=torch.int32)


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x if x.dtype == dtype else aten._to_copy(x, dtype=dtype)
