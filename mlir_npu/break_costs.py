"""What a graph break costs: the values that leave the NPU because of it, and come back."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

from mlir_npu.graph_breaks import BreakCost, GraphBreak, break_of
from mlir_npu.lowering.part_calls import RegionCall
from mlir_npu.lowering.report import GraphReport

_Region = tuple[int, str]  # graph, name


def with_costs(
    breaks: Iterable[GraphBreak], graphs: Sequence[GraphReport], calls: Iterable[RegionCall]
) -> tuple[GraphBreak, ...]:
    """The breaks, each with what crossed it in the calls.

    A value crosses where a region of one graph makes it and a region of another takes it, and the
    break that ended the earlier graph is to blame. In a backward that is the graph that takes it.
    """
    numbers = {id(graph): number for number, graph in enumerate(graphs)}
    makers: dict[int, RegionCall] = {}
    crossings = defaultdict(list)
    for call in calls:
        for memory, size in _memory(call.taken):
            maker = makers.get(memory)
            if maker is None or not _crosses(maker, call):
                continue
            earlier = call if call.graph.kind == "backward" else maker
            ended_by = earlier.graph.captured.ended_by
            if ended_by is not None:
                ends = tuple((numbers[id(end.graph)], end.region.name) for end in (maker, call))
                crossings[break_of(ended_by)].append((memory, size, ends))
        makers |= {memory: call for memory, _ in _memory(call.made)}
    macs = {
        (number, region.name): region.macs
        for number, graph in enumerate(graphs)
        for region in graph.regions
    }
    return tuple(dataclasses.replace(b, cost=_cost(crossings[b], macs)) for b in breaks)


def _memory(tensors: Iterable) -> list[tuple[int, int]]:
    """Where tensors are, and how many bytes each has."""
    return [(t.untyped_storage().data_ptr(), t.numel() * t.element_size()) for t in tensors]


def _crosses(maker: RegionCall, taker: RegionCall) -> bool:
    """Whether a value passes between graphs, or calls of one. What the backward takes of a forward
    is saved with or without a break."""
    if (maker.graph.kind == "backward") != (taker.graph.kind == "backward"):
        return False
    if maker.graph is not taker.graph:
        return maker.graph.captured is not None and taker.graph.captured is not None
    names = [region.name for region in maker.graph.regions]
    return names.index(maker.region.name) >= names.index(taker.region.name)


def _cost(crossings: list, macs: dict[_Region, int]) -> BreakCost:
    sizes = {memory: size for memory, size, _ in crossings}
    groups: list[set[_Region]] = []
    for _, _, ends in crossings:
        joined = [group for group in groups if group & set(ends)]
        groups = [group for group in groups if group not in joined]
        groups.append(set(ends).union(*joined))
    regions = sorted(set().union(*groups))
    return BreakCost(
        bytes=sum(sizes.values()),
        regions=tuple(f"{name} of graph {number}" for number, name in regions),
        macs=tuple(macs[region] for region in regions),
        regions_without=len(groups),
    )
