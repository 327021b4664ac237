"""What the npu ops compute, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def integers(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    """Small integers as f32: sums of their products are exact in any order."""
    return rng.integers(-4, 5, shape).astype(np.float32)


def patches(
    image: np.ndarray,
    window: Sequence[int],
    out: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> np.ndarray:
    """(n, y, x, r, s, c) views of an NHWC image."""
    taps = []
    for r in range(window[0]):
        for s in range(window[1]):
            rows = slice(
                r * dilations[0], r * dilations[0] + (out[0] - 1) * strides[0] + 1, strides[0]
            )
            columns = slice(
                s * dilations[1], s * dilations[1] + (out[1] - 1) * strides[1] + 1, strides[1]
            )
            taps.append(image[:, rows, columns])
    stacked = np.stack(taps, axis=3)
    return stacked.reshape(*stacked.shape[:3], *window, image.shape[3])


def out_extent(extent: int, window: int, stride: int, dilation: int) -> int:
    return (extent - (window - 1) * dilation - 1) // stride + 1


def conv2d(x, w, strides, dilations):
    """NHWC by KoRSCKi -> NyxKoKi."""
    window = w.shape[1:3]
    out = [out_extent(*a) for a in zip(x.shape[1:3], window, strides, dilations)]
    return np.einsum("nyxrsc,krsci->nyxki", patches(x, window, out, strides, dilations), w)


def depthwise_conv2d(x, w, strides, dilations):
    window = w.shape[:2]
    out = [out_extent(*a) for a in zip(x.shape[1:3], window, strides, dilations)]
    return np.einsum("nyxrsc,rsc->nyxc", patches(x, window, out, strides, dilations), w)


def pool2d(x, kind, window, strides, dilations):
    out = [out_extent(*a) for a in zip(x.shape[1:3], window, strides, dilations)]
    taken = patches(x, window, out, strides, dilations)
    return {"max": np.max, "sum": np.sum}[kind](taken, axis=(3, 4))


def relu(x):
    return np.where(x > 0, x, np.float32(0))
