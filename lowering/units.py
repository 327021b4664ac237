"""The units that partitioning places: calls with the getitems that read them, and what floats
freely.

Three kinds of nodes:

* a *unit* is a call together with the getitems of its outputs; it runs once, in one part;
* a *free* node is a view that the NPU path knows, or a constant. It costs nothing, so every part
  that needs it makes its own, and what crosses between parts is the memory itself;
* placeholders and the output.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from torch import fx

from mlir_npu.lowering.dependencies import is_view, order_edges
from mlir_npu.lowering.stages import Units


@dataclass(frozen=True)
class UnitGraph:
    """`graph_module` seen as units. `reasons`: why a call is on the host, for each call that is."""

    graph_module: fx.GraphModule
    reasons: dict[fx.Node, str]

    @cached_property
    def members(self) -> tuple[tuple[fx.Node, ...], ...]:
        """Nodes of each unit in graph order: the call, then its getitems."""
        grouped: dict[fx.Node, list[fx.Node]] = {}
        for node in self.graph_module.graph.nodes:
            if node.op in ("placeholder", "output") or self.is_free(node):
                continue
            grouped.setdefault(_caller(node), []).append(node)
        return tuple(tuple(nodes) for nodes in grouped.values())

    @cached_property
    def unit_of(self) -> dict[fx.Node, int]:
        return {node: index for index, nodes in enumerate(self.members) for node in nodes}

    @cached_property
    def units(self) -> Units:
        before: list[set[int]] = [set() for _ in self.members]
        for index, nodes in enumerate(self.members):
            for node in nodes:
                for operand in node.all_input_nodes:
                    before[index].update(self._units_behind(operand))
        for first, second in order_edges(self.graph_module.graph.nodes):
            if first in self.unit_of and second in self.unit_of:
                before[self.unit_of[second]].add(self.unit_of[first])
        return Units(
            tuple(nodes[0] not in self.reasons for nodes in self.members),
            tuple(tuple(sorted(units - {index})) for index, units in enumerate(before)),
        )

    def is_free(self, node: fx.Node) -> bool:
        if node.op == "get_attr":
            return True
        return is_view(node) and _caller(node) not in self.reasons

    def root(self, node: fx.Node) -> fx.Node:
        """The value in memory (a member of a unit, a placeholder, a constant) behind free nodes."""
        while self.is_free(node) and node.op != "get_attr":
            node = node.args[0]
        return node

    def reads_memory(self, units: Collection[int]) -> bool:
        """Whether any of `units` reads something that is neither a constant nor made among them."""
        for unit in units:
            for operand in (
                operand for node in self.members[unit] for operand in node.all_input_nodes
            ):
                root = self.root(operand)
                if root.op != "get_attr" and self.unit_of.get(root) not in units:
                    return True
        return False

    def _units_behind(self, node: fx.Node) -> set[int]:
        root = self.root(node)
        return {self.unit_of[root]} if root in self.unit_of else set()


def _caller(node: fx.Node) -> fx.Node:
    while node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node
