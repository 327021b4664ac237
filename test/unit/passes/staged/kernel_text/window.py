"""Windows of convolutions and pools: their extents, their padding as text, what they read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from staged.kernel_text.base import tensor


@dataclass(frozen=True)
class Window:
    """Window, stride, dilation and padding of a convolution or pool, each (y, x)."""

    taps: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    low: tuple[int, int] = (0, 0)
    high: tuple[int, int] = (0, 0)

    def padded(self, extents: Sequence[int]) -> tuple[int, int]:
        return tuple(e + a + b for e, a, b in zip(extents, self.low, self.high))

    def output(self, extents: Sequence[int]) -> tuple[int, int]:
        spans = [(k - 1) * d + 1 for k, d in zip(self.taps, self.dilations)]
        return tuple((e - s) // t + 1 for e, s, t in zip(self.padded(extents), spans, self.strides))

    def pad_text(self, shape: Sequence[int], value: str = "%zero") -> tuple[str, tuple[int, ...]]:
        """`%image`, the padded %arg0 of shape (n, y, x, ...)."""
        if not any((*self.low, *self.high)):
            return "", tuple(shape)
        rest = ", 0" * (len(shape) - 3)
        padded = (shape[0], *self.padded(shape[1:3]), *shape[3:])
        names = ", ".join(f"%i{d}: index" for d in range(len(shape)))
        return (
            f"%image = tensor.pad %arg0 low[0, {self.low[0]}, {self.low[1]}{rest}] "
            f"high[0, {self.high[0]}, {self.high[1]}{rest}] {{\n  ^bb0({names}):\n"
            f"    tensor.yield {value} : f32\n  }} : {tensor(shape)} to {tensor(padded)}",
            padded,
        )

    def windows(self, image: np.ndarray, value: float = 0.0):
        """((r, s), input elements that tap meets) of the padded image."""
        pads = [(0, 0), *zip(self.low, self.high), *[(0, 0)] * (image.ndim - 3)]
        padded = np.pad(image, pads, constant_values=value)
        height, width = self.output(image.shape[1:3])
        for r, s in itertools.product(*map(range, self.taps)):
            y, x = r * self.dilations[0], s * self.dilations[1]
            rows = slice(y, y + (height - 1) * self.strides[0] + 1, self.strides[0])
            columns = slice(x, x + (width - 1) * self.strides[1] + 1, self.strides[1])
            yield (r, s), padded[:, rows, columns]
