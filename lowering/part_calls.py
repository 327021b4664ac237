"""What NPU regions take and make while a program runs, for who wants to see it.

Regions of graphs that are compiled while somebody watches say so at each call; others cost nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from mlir_npu.lowering.report import GraphReport, PartReport


@dataclass(frozen=True, eq=False)
class RegionCall:
    """One call of a region. It keeps the tensors, so that their memory is not used again."""

    graph: GraphReport
    region: PartReport
    taken: tuple[torch.Tensor, ...]
    made: tuple[torch.Tensor, ...]


@contextlib.contextmanager
def watch_region_calls() -> Iterator[list[RegionCall]]:
    """Calls, in order, of regions that any thread compiles inside of the block."""
    calls: list[RegionCall] = []
    _watchers.append(calls)
    try:
        yield calls
    finally:
        _watchers[:] = [watcher for watcher in _watchers if watcher is not calls]


def watched(parts: Mapping[str, Callable], graph: GraphReport) -> Mapping[str, Callable]:
    """The parts of a graph, of which regions tell those who watch now."""
    if not _watchers:
        return parts
    regions = {region.name: _telling(parts[region.name], region, graph) for region in graph.regions}
    return {**parts, **regions}


def _telling(call: Callable, region: PartReport, graph: GraphReport) -> Callable:
    watchers = tuple(_watchers)

    def tell(*arguments: object) -> tuple:
        results = call(*arguments)
        told = RegionCall(graph, region, _tensors(arguments), _tensors(results))
        for watcher in watchers:
            watcher.append(told)
        return results

    return tell


def _tensors(values: tuple) -> tuple[torch.Tensor, ...]:
    return tuple(value for value in values if isinstance(value, torch.Tensor))


_watchers: list[list[RegionCall]] = []
