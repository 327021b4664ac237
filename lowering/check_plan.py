"""An independent check of a partition plan: it looks at the plan alone, not at how it was made."""

from __future__ import annotations

from collections import Counter

from torch import fx

from mlir_npu.lowering.dependencies import has_effect, is_view, order_edges, written_nodes
from mlir_npu.lowering.plan import Part, PartitionPlan


class PlanError(AssertionError):
    """A plan that would compute something else than its graph."""


def check_plan(plan: PartitionPlan) -> None:
    """Raise PlanError unless parts run in order, cover the graph once, keep the order of effects,
    return only fresh tensors from regions and make every result."""
    available = set(plan.placeholders)
    for part in plan.parts:
        missing = [name for name in part.inputs if name not in available]
        if missing:
            raise PlanError(f"{part.name} reads {missing}, which no earlier part makes")
        repeated = [name for name in part.outputs if name in available]
        if repeated:
            raise PlanError(f"{part.name} makes {repeated} again")
        _check_interface(part)
        available.update(part.outputs)
    missing = [name for name in plan.results if isinstance(name, str) and name not in available]
    if missing:
        raise PlanError(f"the graph returns {missing}, which no part makes")
    _check_coverage(plan)
    _check_order(plan)
    for part in plan.npu_parts:
        _check_region(part)


def _check_interface(part: Part) -> None:
    graph = part.graph_module.graph
    inputs = tuple(node.name for node in graph.nodes if node.op == "placeholder")
    outputs = tuple(node.name for node in graph.output_node().args[0])
    if (inputs, outputs) != (part.inputs, part.outputs):
        raise PlanError(
            f"{part.name}: graph has {inputs} -> {outputs}, "
            f"plan has {part.inputs} -> {part.outputs}"
        )


def _check_coverage(plan: PartitionPlan) -> None:
    """Every call in exactly one part; views and constants, which cost nothing, in any number of
    parts."""
    counts = Counter(
        node.name
        for part in plan.parts
        for node in part.graph_module.graph.nodes
        if node.op != "placeholder"
    )
    for node in plan.graph_module.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr") or is_view(node):
            continue
        if counts[node.name] != 1:
            raise PlanError(f"{node.name} is in {counts[node.name]} parts")


def _check_order(plan: PartitionPlan) -> None:
    position = {
        node.name: (number, index)
        for number, part in enumerate(plan.parts)
        for index, node in enumerate(part.graph_module.graph.nodes)
        if node.op != "placeholder"
    }
    for before, after in order_edges(plan.graph_module.graph.nodes):
        if position[before.name] >= position[after.name]:
            raise PlanError(
                f"{after.name} would run before {before.name}, whose effect it must see"
            )


def _check_region(part: Part) -> None:
    for node in part.graph_module.graph.nodes:
        if written_nodes(node) or has_effect(node):
            raise PlanError(f"{part.name} holds {node.name} ({node.target}), which has an effect")
    for value in part.graph_module.graph.output_node().args[0]:
        if _outside_memory(value):
            raise PlanError(f"{part.name} returns {value.name}, which is memory that it was given")


def _outside_memory(node: fx.Node) -> bool:
    while is_view(node):
        node = node.args[0]
    return node.op in ("placeholder", "get_attr")
