"""From records to the numbers that are shown; all ratios are speeds, above 1 is faster."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from mlir_npu.benchmarks.engines import OURS, PEERS, SIDE_BY_SIDE
from mlir_npu.benchmarks.results import gflops
from mlir_npu.benchmarks.statistics import Ratio, geometric_mean, speed


@dataclass(frozen=True)
class Comparison:
    """One case. medians, minima: by engine; ratios: our speed over each other's, within rounds."""

    record: dict
    medians: dict[str, float]
    minima: dict[str, float]
    ratios: dict[str, Ratio]

    @property
    def peers(self) -> list[str]:
        return [name for name in PEERS if name in self.ratios]

    @property
    def best_peer(self) -> str:
        """The one whose median is the least."""
        return min(self.peers, key=self.medians.__getitem__)

    @property
    def over_best(self) -> Ratio:
        return self.ratios[self.best_peer]

    @property
    def over_best_by_minimum(self) -> float:
        """As over_best, from the fastest calls: of the peer whose fastest call is the fastest."""
        return min(self.minima[name] for name in self.peers) / self.minima[OURS]

    def relative_speed(self, engine: str) -> float:
        """The engine's speed over that of the best peer, from ratios to ours within rounds."""
        ours = self.over_best.median
        return ours if engine == OURS else ours / self.ratios[engine].median

    def rate(self, engine: str) -> float:
        """GFLOP/s of the engine's fastest call."""
        return gflops(self.record, self.minima[engine])


def compare(record: dict) -> Comparison | None:
    """None for a case without us or without a peer."""
    values = {name: o["values"] for name, o in record["engines"].items() if "values" in o}
    if OURS not in values or not set(PEERS) & set(values):
        return None
    return Comparison(
        record,
        {name: statistics.median(times) for name, times in values.items()},
        {name: min(times) for name, times in values.items()},
        {name: speed(values[OURS], times) for name, times in values.items() if name != OURS},
    )


def comparisons(document: dict, suite: str, threads: int) -> list[Comparison]:
    chosen = (
        record
        for record in document["records"]
        if record["case"]["suite"] == suite and record["case"]["threads"] == threads
    )
    return [comparison for record in chosen if (comparison := compare(record))]


def group_by(items: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    """By the group of the case, in order of appearance."""
    groups: dict[str, list[Comparison]] = {}
    for item in items:
        groups.setdefault(item.record["case"]["group"], []).append(item)
    return groups


@dataclass(frozen=True)
class GroupSummary:
    """Geometric means over the cases of a group.

    rate: GFLOP/s of the best peer of each case; speeds: each engine's over the best peer of each
    case; over_group_best: ours over the one peer that is best in the mean; by_minimum: ours over
    the best peer, from fastest calls; of_peak: our share of the FMA peak; wins: cases in which no
    peer is faster.
    """

    count: int
    rate: float
    speeds: dict[str, float]
    over_group_best: float
    by_minimum: float
    of_peak: float
    wins: int


def summarise(group: list[Comparison], peak: float) -> GroupSummary:
    """Engines that are missing in one case are left out of `speeds`."""
    engines = [name for name in SIDE_BY_SIDE if all(name in item.medians for item in group)]
    speeds = {name: geometric_mean(item.relative_speed(name) for item in group) for name in engines}
    return GroupSummary(
        count=len(group),
        rate=geometric_mean(item.rate(item.best_peer) for item in group),
        speeds=speeds,
        over_group_best=speeds[OURS] / max(speeds[name] for name in PEERS if name in speeds),
        by_minimum=geometric_mean(item.over_best_by_minimum for item in group),
        of_peak=geometric_mean(item.rate(OURS) for item in group) / peak,
        wins=sum(item.over_best.median >= 1 for item in group),
    )


def threads_of(document: dict, suite: str) -> list[int]:
    cases = (record["case"] for record in document["records"])
    return sorted({case["threads"] for case in cases if case["suite"] == suite})
