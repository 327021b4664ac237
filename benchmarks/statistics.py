"""Times of alternating rounds to ratios: medians, spreads, geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def geometric_mean(values: Iterable[float]) -> float:
    """NaN for no values."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan


@dataclass(frozen=True)
class Ratio:
    """The median of ratios that were taken round by round, and the quartiles beside it."""

    median: float
    low: float
    high: float


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high


def speed(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """How many times as fast as `theirs` is `ours`; item i of both was taken in round i.

    What slows the machine down for a while slows both, so the ratio within a round holds where the
    times do not.
    """
    low, median, high = quartiles([b / a for a, b in zip(ours, theirs, strict=True)])
    return Ratio(median, low, high)


def is_settled(ours: Sequence[float], others: Iterable[Sequence[float]], within: float) -> bool:
    """Whether the median ratio to each of the others is known to a part of `within`.

    The standard error of a median of n values is about 0.93 interquartile ranges / sqrt(n).
    """
    for theirs in others:
        ratio = speed(ours, theirs)
        if 0.93 * (ratio.high - ratio.low) / math.sqrt(len(ours)) > within * ratio.median:
            return False
    return True


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """p of the least-squares fit time = c * size**p: 1 for a cost that is linear."""
    x, y = [math.log(size) for size in sizes], [math.log(time) for time in times]
    return statistics.linear_regression(x, y).slope
