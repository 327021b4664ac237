"""What must stay before what in an ATen graph beyond the flow of data: aliases, writes, effects.

AOTAutograd graphs are functional but for the copies into mutated inputs at the end; other graphs
write in place anywhere. Both must come out with every read seeing the writes that came before it,
and no other.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import fx

# Share memory with their argument although the schema does not say so.
_HIDDEN_VIEWS = ("aten._unsafe_view.default",)

# Draws random numbers for its dropout only.
_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


def is_view(node: fx.Node) -> bool:
    """Whether the result (or a result of a list) may share memory with the first argument,
    unwritten."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return is_view(node.args[0])
    if str(node.target) in _HIDDEN_VIEWS:
        return True
    schema = getattr(node.target, "_schema", None)
    if (
        schema is None
        or schema.is_mutable
        or not node.args
        or not isinstance(node.args[0], fx.Node)
    ):
        return False
    return any(result.alias_info is not None for result in schema.returns)


def alias_root(node: fx.Node) -> fx.Node:
    """The node whose memory this value lives in."""
    while is_view(node) or is_in_place(node):
        node = node.args[0]
    return node


def is_in_place(node: fx.Node) -> bool:
    """Whether the result is the written first argument itself, as in aten.add_."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    if schema is None or not schema.is_mutable or not schema.returns:
        return False
    info = schema.returns[0].alias_info
    first = schema.arguments[0].alias_info
    return info is not None and info.is_write and first is not None and first.is_write


def written_nodes(node: fx.Node) -> list[fx.Node]:
    """Arguments that a call writes to; all of them if the call does not tell."""
    if node.op != "call_function" or not _may_have_effects(node):
        return []
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return list(node.all_input_nodes)
    written: list[fx.Node] = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
        fx.map_arg(value, written.append)
    return written


def has_effect(node: fx.Node) -> bool:
    """Whether the order of this call among others with effects matters: writes, random numbers,
    assertions, calls of unknown things."""
    return node.op in ("call_module", "call_method") or (
        node.op == "call_function" and _may_have_effects(node)
    )


def order_edges(nodes: Iterable[fx.Node]) -> list[tuple[fx.Node, fx.Node]]:
    """Pairs (before, after) of calls whose order the flow of data does not show.

    Views read no memory, so they take no part: their readers do, through `alias_root`.
    """
    edges: list[tuple[fx.Node, fx.Node]] = []
    last_effect: fx.Node | None = None
    last_writer: dict[fx.Node, fx.Node] = {}
    readers: dict[fx.Node, list[fx.Node]] = defaultdict(list)
    for node in nodes:
        if node.op not in ("call_function", "call_module", "call_method") or is_view(node):
            continue
        if node.target is operator.getitem:
            continue
        if has_effect(node):
            if last_effect is not None:
                edges.append((last_effect, node))
            last_effect = node
        for root in dict.fromkeys(alias_root(operand) for operand in node.all_input_nodes):
            if root in last_writer:
                edges.append((last_writer[root], node))
            readers[root].append(node)
        for root in dict.fromkeys(alias_root(operand) for operand in written_nodes(node)):
            edges.extend((reader, node) for reader in readers[root] if reader is not node)
            readers[root] = [node]
            last_writer[root] = node
    return edges


def _may_have_effects(node: fx.Node) -> bool:
    if node.target is operator.getitem:
        return False
    if not isinstance(node.target, torch._ops.OpOverload):
        return getattr(node.target, "__module__", None) not in ("_operator", "math", "torch")
    if node.target is _ATTENTION and not node.kwargs.get("dropout_p", (*node.args, 0, 0, 0, 0)[3]):
        return False
    if node.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags:
        return True
    return node.is_impure()
