"""A window that moves along one axis of an image: which of its taps meet data."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.passes.analysis.register_tile import Span
from mlir_npu.passes.microkernels.emit import Offset, ceil_div, floor_div, maximum, minimum


@dataclass(frozen=True)
class Axis:
    """`outputs` windows of `taps` taps: tap t of window o reads position o*stride + t*dilation.

    Positions from `low` on, `extent` of them, are data; the others are padding.
    """

    outputs: int
    taps: int
    stride: int
    dilation: int
    low: Offset
    extent: Offset

    @property
    def is_static(self) -> bool:
        """Whether it is known at compile time where the data lies."""
        return self.low.value is None and self.extent.value is None

    @property
    def reach(self) -> int:
        """From the first tap of a window to its last."""
        return (self.taps - 1) * self.dilation

    @property
    def begins_early(self) -> bool:
        """Whether the first taps of some window may meet padding."""
        return self.low.value is not None or self.low.constant > 0

    @property
    def ends_late(self) -> bool:
        """Whether the last taps of some window may meet padding."""
        last = (self.outputs - 1) * self.stride + self.reach
        return not self.is_static or last >= self.low.constant + self.extent.constant

    def inner(self) -> tuple[Offset, Offset]:
        """The range of windows all of whose taps meet data."""
        end = self.low + self.extent
        first = minimum(maximum(ceil_div(self.low, self.stride), 0), self.outputs)
        last = floor_div(end + (-1 - self.reach), self.stride) + 1
        return first, minimum(maximum(last, first), self.outputs)

    def spans(self, width: int) -> list[tuple[Span, tuple[range, ...]]]:
        """Runs of equal tiles of `width` windows, with the taps of each window that meet data.

        Where the data lies must be known at compile time.
        """
        runs: list[tuple[Span, tuple[range, ...]]] = []
        for start in range(0, self.outputs, width):
            size = min(width, self.outputs - start)
            taps = tuple(self._taps_at(start + window) for window in range(size))
            if runs and runs[-1][1] == taps:
                span = runs[-1][0]
                runs[-1] = Span(span.start, span.count + 1, size), taps
            else:
                runs.append((Span(start, 1, size), taps))
        return runs

    def _taps_at(self, output: int) -> range:
        position = Offset(None, output * self.stride)
        return range(*(bound.constant for bound in self.valid_taps(position, position)))

    def valid_taps(self, first: Offset, last: Offset) -> tuple[Offset, Offset]:
        """The range of taps that meet data in a window from position `first` to `last`.

        first, last: where the first and the last of some neighbouring windows begin.
        """
        lower = ceil_div(self.low + last.times(-1), self.dilation)
        upper = floor_div(self.low + self.extent + first.times(-1) + (-1), self.dilation) + 1
        return minimum(maximum(lower, 0), self.taps), minimum(maximum(upper, 0), self.taps)


@dataclass(frozen=True)
class Position:
    """Stands among the operands of a nest for the place along an axis where a window begins."""

    strides: tuple[int, ...]
    start: int = 0
