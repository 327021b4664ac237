"""A transposed convolution along one axis as convolutions, one for each phase of its stride.

    out[h] = sum of x[q] * w[r] over all q, r with q * stride + r * dilation - padding = h

Outputs whose index has the same remainder by the stride use the same taps, each `step`-th one, on
neighbouring elements of x. So they are a convolution of x with stride 1 and the reversed taps, and
no product has a zero between elements of x as a factor. With stride 1 there is one phase.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """`taps`: positions in the weights, in the order in which the convolution walks them; none if
    the outputs are zero. `low`, `high`: elements that x is padded by; negative ones crop it."""

    taps: tuple[int, ...]
    dilation: int
    low: int
    high: int


def phases(
    extent: int, out: int, taps: int, stride: int, padding: int, dilation: int
) -> tuple[Phase, ...]:
    """Of an axis of `extent` elements and `out` outputs; every phase has ceil(out / stride)
    outputs, the last of which may lie behind the end."""
    count = -(-out // stride)
    return tuple(
        _phase(extent, count, taps, stride, first + padding, dilation) for first in range(stride)
    )


def _phase(extent: int, count: int, taps: int, stride: int, offset: int, dilation: int) -> Phase:
    shared = math.gcd(stride, dilation)
    if offset % shared:
        return Phase((), 1, 0, 0)
    step, spacing = stride // shared, dilation // shared
    first = next(r for r in range(step) if (offset - r * dilation) % stride == 0)
    used = tuple(range(first, taps, step))
    reach = (len(used) - 1) * spacing
    low = reach - (offset - first * dilation) // stride
    high = count + reach - extent - low
    if not used or low <= -extent or high <= -extent:
        return Phase((), 1, 0, 0)
    return Phase(used[::-1], spacing, low, high)
