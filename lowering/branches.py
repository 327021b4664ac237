"""Both branches of torch.cond, compiled as graphs of their own.

Before: cond(p, true_graph_0, false_graph_0, (x, w)), with fx.GraphModules as branches
After:  the same call, in a host part, of branches that are compiled functions

PyTorch evaluates the condition and calls one of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

import torch
from torch import fx

from mlir_npu.lowering.roles import Role

CompileBranch = Callable[[fx.GraphModule, Mapping[str, Role]], Callable]


class Branch(torch.nn.Module):
    """A compiled branch, as cond wants it."""

    def __init__(self, call: Callable) -> None:
        super().__init__()
        self._call = call

    def forward(self, *operands):
        return self._call(list(operands))


def is_cond(node: fx.Node) -> bool:
    return node.target is torch.ops.higher_order.cond


def with_compiled_branches(
    graph_module: fx.GraphModule, roles: Mapping[str, Role], compile_: CompileBranch
) -> fx.GraphModule:
    """A copy with compiled branches; the graph itself if it has no branches."""
    if not any(map(is_cond, graph_module.graph.nodes)):
        return graph_module
    graph = fx.Graph()
    graph.output(graph.graph_copy(graph_module.graph, {}))
    copy = fx.GraphModule(graph_module, graph)
    for node in filter(is_cond, graph.nodes):
        _, *branches, operands = node.args
        for branch in branches:
            module = operator.attrgetter(branch.target)(copy)
            if isinstance(module, Branch):  # another cond has it, too
                continue
            call = compile_(module, _inner_roles(module, operands, roles))
            copy.set_submodule(branch.target, Branch(call))
    return copy


def _inner_roles(
    branch: fx.GraphModule, operands: tuple, roles: Mapping[str, Role]
) -> dict[str, Role]:
    """What the inputs of a branch are: what is handed to them."""
    inner = branch.graph.find_nodes(op="placeholder")
    named = ((node, getattr(operand, "name", None)) for node, operand in zip(inner, operands))
    return {node.name: roles[name] for node, name in named if name in roles}
