"""Cut an ATen graph into NPU regions and host parts.

simplified copy -> units, each on the NPU or the host (support rules, host_ops, npu_ops)
                -> stages (stages.py: valid, fewest regions)
                -> regions too small to pay go back to the host, and stages are assigned anew
                -> one GraphModule per stage, then an independent check of the whole plan
"""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import Protocol

from torch import fx

from mlir_npu.lowering.check_plan import check_plan
from mlir_npu.lowering.cut import cut
from mlir_npu.lowering.macs import count_conv_macs, count_elements, count_macs
from mlir_npu.lowering.plan import Part, PartitionPlan, Rejection
from mlir_npu.lowering.simplify import simplified_copy
from mlir_npu.lowering.source_location import source_location
from mlir_npu.lowering.stages import assign_stages, components
from mlir_npu.lowering.support import explain_support
from mlir_npu.lowering.units import UnitGraph

# A region call costs a few microseconds of stitching: a lone relu or add never earns that back.
DEFAULT_MIN_REGION_MACS = 4096


class PartitionOptions(Protocol):
    """min_region_macs: work below which a region runs on the host (see `region_work`).
    host_ops: ops forced to the host, as "relu", "aten.relu" or "aten.relu.default"; npu_ops: the
    only ones that may be on the NPU, if there are any."""

    min_region_macs: int
    host_ops: tuple[str, ...]
    npu_ops: tuple[str, ...] | None


def partition(graph_module: fx.GraphModule, options: PartitionOptions) -> PartitionPlan:
    """Plan for one graph from AOTAutograd. The graph is not changed; the plan holds a copy.

    Nodes need meta["val"]. Raises PlanError if the plan fails its own check, which is a bug here.
    """
    copy = simplified_copy(graph_module)
    reasons = _host_reasons(copy, options)
    while True:
        graph = UnitGraph(copy, reasons)
        stages = assign_stages(graph.units)
        small = _too_small(graph, stages, options.min_region_macs)
        if not small:
            break
        reasons = reasons | small
    plan = _build_plan(graph, stages)
    check_plan(plan)
    return plan


def region_work(nodes: list[fx.Node]) -> int:
    """What a region saves, in multiply-accumulates: its MACs, and one for each element of every
    element-wise, pooling or copying pass but the largest (eager makes that one as fast)."""
    macs = sum(count_macs(node) for node in nodes)
    passes = [count_elements(node) for node in nodes if _is_pass(node)]
    return macs + sum(passes) - (max(passes, default=0) if not macs else 0)


def matches_op(name: str, node: fx.Node) -> bool:
    """Whether `name` ("relu", "aten.relu", "aten.relu.default") names the op that `node` calls."""
    overload = str(node.target)
    packet = overload.rsplit(".", 1)[0]
    return name in (overload, packet, packet.split(".", 1)[-1])


def placed_on_host(node: fx.Node, options: PartitionOptions) -> str | None:
    """The option that keeps the node on the host, if one does."""
    forced = next((name for name in options.host_ops if matches_op(name, node)), None)
    if forced is not None:
        return f'the option host_ops="{forced}" keeps it on the host'
    if options.npu_ops is None or any(matches_op(name, node) for name in options.npu_ops):
        return None
    return f"the option npu_ops does not list {node.target}"


def _host_reasons(graph_module: fx.GraphModule, options: PartitionOptions) -> dict[fx.Node, str]:
    reasons: dict[fx.Node, str] = {}
    for node in graph_module.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr") or node.target is operator.getitem:
            continue
        if reason := placed_on_host(node, options) or explain_support(node):
            reasons[node] = reason
    return reasons


def _too_small(graph: UnitGraph, stages: list[int], minimum: int) -> dict[fx.Node, str]:
    """Calls to return to the host: those of stages that do too little, and those of connected
    groups that do too little and sit between two host parts, which they would keep apart, or have
    no input."""
    units = graph.units
    successors = units.successors()
    by_stage = defaultdict(list)
    for group in components(units, stages):
        by_stage[stages[group[0]]].append(group)
    reasons: dict[fx.Node, str] = {}
    for groups in by_stage.values():
        everything = tuple(unit for group in groups for unit in group)
        if (work := _work(graph, everything)) < minimum:
            reasons |= _small_reasons(graph, everything, work, minimum)
            continue
        for group in groups:
            if not graph.reads_memory(group):
                reasons |= {
                    graph.members[unit][0]: "it depends on constants only" for unit in group
                }
                continue
            after_host = any(
                not units.on_npu[u] for unit in group for u in units.predecessors[unit]
            )
            before_host = any(not units.on_npu[u] for unit in group for u in successors[unit])
            if after_host and before_host and (work := _work(graph, group)) < minimum:
                reasons |= _small_reasons(graph, group, work, minimum)
    return reasons


def _work(graph: UnitGraph, units: tuple[int, ...]) -> int:
    return region_work([node for unit in units for node in graph.members[unit]])


def _small_reasons(
    graph: UnitGraph, units: tuple[int, ...], work: int, minimum: int
) -> dict[fx.Node, str]:
    region = f"its region of {len(units)} ops saves the work of {work} MACs"
    reason = f"{region}, less than min_region_macs={minimum}"
    return {graph.members[unit][0]: reason for unit in units}


def _is_pass(node: fx.Node) -> bool:
    return (
        node.op == "call_function" and node.target is not operator.getitem and not count_macs(node)
    )


def _build_plan(graph: UnitGraph, stages: list[int]) -> PartitionPlan:
    pieces, results = cut(graph, stages)
    counters: dict[str, int] = defaultdict(int)
    parts = []
    for piece in pieces:
        place = "npu" if piece.stage % 2 else "host"
        calls = [node for node in piece.graph_module.graph.nodes if _is_call(node)]
        parts.append(
            Part(
                name=f"{place}_{counters[place]}",
                place=place,
                graph_module=piece.graph_module,
                inputs=piece.inputs,
                outputs=piece.outputs,
                macs=sum(count_macs(node) for node in calls),
                conv_macs=count_conv_macs(calls),
                node_count=len(calls),
            )
        )
        counters[place] += 1
    nodes = graph.graph_module.graph.nodes
    return PartitionPlan(
        graph_module=graph.graph_module,
        placeholders=tuple(node.name for node in nodes if node.op == "placeholder"),
        parts=tuple(parts),
        results=results,
        rejections=tuple(
            Rejection(node.name, str(node.target), reason, source_location(node))
            for node, reason in (graph.reasons | _host_views(graph, parts)).items()
        ),
    )


def _host_views(graph: UnitGraph, parts: list[Part]) -> dict[fx.Node, str]:
    """Supported views that only host parts hold, with the reason."""
    held: dict[str, set[str]] = {"host": set(), "npu": set()}
    for part in parts:
        held[part.place] |= {node.name for node in part.graph_module.graph.nodes if _is_call(node)}
    names = held["host"] - held["npu"]
    return {
        node: "it is a view: the host makes it where it is read or returned, without moving data"
        for node in graph.graph_module.graph.nodes
        if node.name in names and node not in graph.reasons
    }


def _is_call(node: fx.Node) -> bool:
    return (
        node.op in ("call_function", "call_method", "call_module")
        and node.target is not operator.getitem
    )
