"""Compute at compile time what depends on constants only.

Networks build positions, masks and tables of indices from nothing in every call. Folded, they cost
nothing, and an index whose numbers are known is one that support rules can look at.

Before: arange(4) -> add(_, 0.5) -> mul(_, 0.5) -> _to_copy(int64) -> index(x, [_])
After:  index(x, [_folded_0])
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch import fx

from mlir_npu.lowering.dependencies import has_effect, is_view

# Larger constants are cheaper to make again than to keep.
MAX_ELEMENTS = 1 << 20

aten = torch.ops.aten
# Read no more of their argument than its shape, and fill their result with this. Where the program
# leaves the contents open, any will do.
_FILLS: dict[torch._ops.OpOverload, Callable[[fx.Node], object]] = {
    **dict.fromkeys((aten.zeros_like.default, aten.new_zeros.default), lambda node: 0),
    **dict.fromkeys((aten.empty_like.default, aten.new_empty.default), lambda node: 0),
    **dict.fromkeys((aten.ones_like.default, aten.new_ones.default), lambda node: 1),
    aten.full_like.default: lambda node: node.args[1],
    aten.new_full.default: lambda node: node.args[2],
}


def fold_constants(graph_module: fx.GraphModule) -> None:
    """Replace, in place, every maximal subgraph without inputs by its values.

    Results of the graph stay calls: each run returns memory of its own.
    """
    graph = graph_module.graph
    values: dict[fx.Node, torch.Tensor] = {}
    for node in graph.nodes:
        if (value := _value(graph_module, node, values)) is not None:
            values[node] = value
    returned = _returned(graph)
    folded = [
        node
        for node in values
        if node.op == "call_function"
        and node not in returned
        and any(user not in values for user in node.users)
    ]
    for index, node in enumerate(folded):
        name = f"_folded_{index}"
        setattr(graph_module, name, values[node])
        with graph.inserting_before(node):
            constant = graph.create_node("get_attr", name)
        constant.meta.update(node.meta)
        for user in [user for user in node.users if user not in returned or user not in values]:
            user.replace_input_with(node, constant)
    graph.eliminate_dead_code()


def _value(
    graph_module: fx.GraphModule, node: fx.Node, values: dict[fx.Node, torch.Tensor]
) -> torch.Tensor | None:
    """The value of a node that depends on constants only; None of any other."""
    if node.op == "get_attr":
        held = operator.attrgetter(node.target)(graph_module)
        plain = isinstance(held, torch.Tensor) and not isinstance(held, torch.nn.Parameter)
        return held if plain and _is_small(held) else None
    if not isinstance(node.target, torch._ops.OpOverload) or has_effect(node):
        return None
    if not isinstance(node.meta.get("val"), torch.Tensor) or not _is_small(node.meta["val"]):
        return None
    if node.target in _FILLS:
        return _full(node)
    if any(operand not in values for operand in node.all_input_nodes):
        return None
    try:
        with torch.no_grad():
            return _owned(node.target(*_filled(node.args, values), **_filled(node.kwargs, values)))
    except RuntimeError:  # what is wrong with the call is for the run to say
        return None


def _full(node: fx.Node) -> torch.Tensor | None:
    """What a call makes that needs no more than the shape of its argument."""
    value, fill = node.meta["val"], _FILLS[node.target](node)
    if isinstance(fill, fx.Node) or not all(isinstance(stride, int) for stride in value.stride()):
        return None
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).fill_(fill)


def _filled(arguments: object, values: dict[fx.Node, torch.Tensor]) -> object:
    return fx.map_arg(arguments, values.__getitem__)


def _owned(value: torch.Tensor) -> torch.Tensor:
    """Views of constants too are constants of their own, as tensors expanded are small no more."""
    return value if value._base is None else value.clone(memory_format=torch.preserve_format)


def _is_small(value: torch.Tensor) -> bool:
    known = all(isinstance(size, int) for size in value.shape)
    return (
        known
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and value.numel() <= MAX_ELEMENTS
    )


def _returned(graph: fx.Graph) -> set[fx.Node]:
    """Results of the graph, and what they are views of."""
    found: set[fx.Node] = set()
    for node in graph.output_node().all_input_nodes:
        while node not in found:
            found.add(node)
            if is_view(node):
                node = node.args[0]
    return found
