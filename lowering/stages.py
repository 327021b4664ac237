"""When each unit of a graph runs: the algorithm behind partitioning, on plain numbers.

Units are numbered in a topological order and each has a place, NPU or host. `predecessors[u]` holds
the units that must have run before u (data and order of effects). A *stage* is a number, even for
host stages and odd for NPU stages; the units of one stage are compiled together and the stages run
in ascending order.

    stage(u) = smallest number of u's parity that is >= stage(p) for every predecessor p

* Valid. An edge p -> u has stage(p) <= stage(u), so the stages, run in order, never need a later
  one. A path that leaves a stage goes to a higher one and cannot come back: every stage is convex,
  and the graph of stages has no cycle. Any later change that keeps stage(p) <= stage(u) keeps all
  of this.
* Fewest regions. A path that changes from host to NPU n times needs n NPU regions in any valid
  partition, because two NPU nodes with a host node between them cannot share a convex region. The
  rule uses one stage for each such change on the worst path and none more.
* Deterministic. It depends on the order of the units only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Units:
    """on_npu[u]: place of unit u. predecessors[u]: sorted, all smaller than u."""

    on_npu: tuple[bool, ...]
    predecessors: tuple[tuple[int, ...], ...]

    def successors(self) -> list[list[int]]:
        result: list[list[int]] = [[] for _ in self.on_npu]
        for unit, before in enumerate(self.predecessors):
            for predecessor in before:
                result[predecessor].append(unit)
        return result


def assign_stages(units: Units) -> list[int]:
    """Stage of every unit: as early as possible, then moved later where that saves a crossing value
    (`_sink_components`) or a host part (`_merge_host_stages`)."""
    stages = _earliest(units)
    _sink_components(units, stages)
    _merge_host_stages(units, stages)
    return stages


def components(units: Units, stages: Sequence[int]) -> list[tuple[int, ...]]:
    """Groups of NPU units that are connected by edges inside their stage, ordered by first unit."""
    parent = list(range(len(stages)))

    def find(unit: int) -> int:
        while parent[unit] != unit:
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    for unit, before in enumerate(units.predecessors):
        for predecessor in before:
            if units.on_npu[unit] and stages[predecessor] == stages[unit]:
                parent[max(find(unit), find(predecessor))] = min(find(unit), find(predecessor))
    groups = defaultdict(list)
    for unit, on_npu in enumerate(units.on_npu):
        if on_npu:
            groups[find(unit)].append(unit)
    return [tuple(members) for _, members in sorted(groups.items())]


def _earliest(units: Units) -> list[int]:
    stages: list[int] = []
    for on_npu, before in zip(units.on_npu, units.predecessors, strict=True):
        stage = max((stages[predecessor] for predecessor in before), default=0)
        stages.append(stage if stage % 2 == on_npu else stage + 1)
    return stages


def _sink_components(units: Units, stages: list[int]) -> None:
    """Move a component that nothing else in its stage feeds into the later NPU stage that reads it.

    A transposed weight or a folded statistic then sits with the layer that uses it. Components go
    as a whole, latest stage first, so that no edge inside one is cut and chains move together.
    """
    successors = units.successors()
    for component in sorted(
        components(units, stages), key=lambda members: (-stages[members[0]], members)
    ):
        members = set(component)
        readers = [
            reader for unit in component for reader in successors[unit] if reader not in members
        ]
        if not readers:
            continue
        first = min(readers, key=lambda reader: (stages[reader], not units.on_npu[reader]))
        if units.on_npu[first]:
            for unit in component:
                stages[unit] = stages[first]


def _merge_host_stages(units: Units, stages: list[int]) -> None:
    """Move a whole host stage into the next one if none of its units is needed before that."""
    successors = units.successors()
    host = sorted({stage for stage, on_npu in zip(stages, units.on_npu, strict=True) if not on_npu})
    for stage, following in zip(host, host[1:], strict=False):
        members = [unit for unit, own in enumerate(stages) if own == stage]
        readers = [reader for unit in members for reader in successors[unit]]
        if all(stages[reader] == stage or stages[reader] >= following for reader in readers):
            for unit in members:
                stages[unit] = following
