"""Max pooling with its indices, and its gradient, in calls that become machine code.

In eager the gradient of a maximum is scattered to computed places. Here every place of the windows
is compared with the indices, and what belongs there is added up, so that no index is ever used as
an address:

    values, indices = max_pool2d(x)  ->  for each place of a window: where it holds a larger value
                                         than those before, take value and place
    its gradient                     ->  for each place of a window: where indices are that place,
                                         add the gradient there
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from mlir_npu.lowering.support.rules import pair

aten = torch.ops.aten


@dataclass(frozen=True)
class _Axis:
    """How windows lie in one dimension of an image."""

    size: int
    window: int
    stride: int
    padding: int
    ceil_mode: bool

    @property
    def count(self) -> int:
        """Of windows; the last one starts inside of the image or its left padding."""
        free = self.size + 2 * self.padding - self.window
        count = (free + (self.stride - 1 if self.ceil_mode else 0)) // self.stride + 1
        outside = self.ceil_mode and (count - 1) * self.stride >= self.size + self.padding
        return count - 1 if outside else count

    @property
    def spread(self) -> int:
        """From a place of the first window to the same place of the last one."""
        return (self.count - 1) * self.stride + 1

    @property
    def padded(self) -> int:
        """Size with padding, as far as windows reach."""
        return max(self.spread + self.window - 1, self.padding + self.size)

    @property
    def behind(self) -> int:
        return self.padded - self.padding - self.size

    def places(self, place: int) -> Tensor:
        """Where this place of each window lies in the image; negative in the padding."""
        start = place - self.padding
        return torch.arange(start, start + self.spread, self.stride)


class _Windows:
    def __init__(
        self, shape: Sequence[int], kernel: list, stride: list, padding: list, ceil_mode: bool
    ) -> None:
        kernel = pair(kernel)
        sizes = zip(shape[-2:], kernel, pair(stride or kernel), pair(padding), strict=True)
        self.rows, self.columns = (_Axis(*axis, ceil_mode) for axis in sizes)
        self.places = tuple(itertools.product(*map(range, kernel)))

    def indices(self, place: tuple[int, int]) -> Tensor:
        """As PyTorch counts them: row by row through the image."""
        rows, columns = self.rows.places(place[0]), self.columns.places(place[1])
        return rows.reshape(-1, 1) * self.columns.size + columns

    def first_indices(self) -> Tensor:
        """Of the first place of each window that lies in the image."""
        rows, columns = (axis.places(0).clamp_min(0) for axis in (self.rows, self.columns))
        return rows.reshape(-1, 1) * self.columns.size + columns

    def padded(self, image: Tensor) -> Tensor:
        rows, columns = self.rows, self.columns
        around = (columns.padding, columns.behind, rows.padding, rows.behind)
        return pad(image, around, value=-torch.inf) if any(around) else image

    def at(self, padded: Tensor, place: tuple[int, int]) -> Tensor:
        """The value there, for all windows."""
        for dim, axis, start in ((-2, self.rows, place[0]), (-1, self.columns, place[1])):
            padded = aten.slice.Tensor(padded, dim, start, start + axis.spread, axis.stride)
        return padded

    def spread(self, values: Tensor, place: tuple[int, int]) -> Tensor:
        """An image, padded, with one value of each window at this place and zeros elsewhere."""
        *batch, _, _ = values.shape
        rows, columns = self.rows, self.columns
        gaps = (0, columns.stride - 1, 0, 0, 0, rows.stride - 1)
        if any(gaps):
            apart = values.reshape(*batch, rows.count, 1, columns.count, 1)
            values = pad(apart, gaps).reshape(
                *batch, rows.count * rows.stride, columns.count * columns.stride
            )
        values = aten.slice.Tensor(values, -2, 0, rows.spread)
        values = aten.slice.Tensor(values, -1, 0, columns.spread)
        top, left = place
        below = rows.padded - rows.spread - top
        right = columns.padded - columns.spread - left
        return pad(values, (left, right, top, below))

    def cropped(self, padded: Tensor) -> Tensor:
        for dim, axis in ((-2, self.rows), (-1, self.columns)):
            padded = aten.slice.Tensor(padded, dim, axis.padding, axis.padding + axis.size)
        return padded


def max_pool2d_with_indices(
    x: Tensor,
    kernel_size: list,
    stride: list = (),
    padding: list = (0,),
    dilation: list = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    if pair(dilation) != pair(1):
        return NotImplemented
    windows = _Windows(x.shape, kernel_size, stride, padding, ceil_mode)
    padded = windows.padded(x)
    best = torch.full_like(windows.at(padded, (0, 0)), -torch.inf)
    found = windows.first_indices().expand(best.shape)
    for place in windows.places:
        value = windows.at(padded, place)
        larger = (value > best) | (value != value)
        best = torch.where(larger, value, best)
        found = torch.where(larger, windows.indices(place), found)
    return best, found


def max_pool2d_with_indices_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: list,
    stride: list,
    padding: list,
    dilation: list,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    if pair(dilation) != pair(1):
        return NotImplemented
    windows = _Windows(x.shape, kernel_size, stride, padding, ceil_mode)
    nothing = torch.zeros_like(grad)

    def belonging(place: tuple[int, int]) -> Tensor:
        mine = torch.where(indices == windows.indices(place), grad, nothing)
        return windows.spread(mine, place)

    return windows.cropped(reduce(torch.add, map(belonging, windows.places)))


POOL_INDICES: dict[torch._ops.OpOverload, Callable] = {
    aten.max_pool2d_with_indices.default: max_pool2d_with_indices,
    aten.max_pool2d_with_indices_backward.default: max_pool2d_with_indices_backward,
}
