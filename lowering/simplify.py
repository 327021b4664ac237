"""Rewrites of a captured graph that make it easier to partition. They change no result.

* Parts without elements are left out of concatenations.
* What depends on constants only (positions, masks, tables of indices) is computed now.
* A number that the program wrote as a tensor literal (`x * torch.tensor(2.0)`) becomes a number
  again, so that it neither splits a region nor crosses into one.
* The empty statistics that evaluation-mode batch normalization returns on the cpu, and that
  training graphs save, are made by the host, so that the normalization itself can be part of a
  region.
* One number for all dimensions of a convolution is written once for each.
* A copy over all of a tensor that nobody reads before is a copy only.
* Calls that nothing reads are dropped.
"""

from __future__ import annotations

import operator

import torch
from torch import fx

from mlir_npu.lowering.fold_constants import fold_constants
from mlir_npu.lowering.support.rules import find_rule, result

_BINARY = ("aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor")
# position of the image -> positions of lists with a number for each of its dimensions
_CONVOLUTIONS = {
    "aten.convolution.default": (0, (3, 4, 5, 7)),
    "aten.convolution_backward.default": (1, (4, 5, 6, 8)),
}
_FRESH_COPIES = ("aten.lift_fresh_copy.default", "aten.clone.default", "aten.detach.default")


def simplified_copy(graph_module: fx.GraphModule) -> fx.GraphModule:
    """A copy with its own graph; names of nodes are kept. The given graph is left alone."""
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    results = graph.graph_copy(graph_module.graph, values)
    graph.output(results)
    copy = fx.GraphModule(graph_module, graph)
    copy.meta.update(graph_module.meta)
    fold_constants(copy)
    for node in list(graph.nodes):
        _drop_empty_operands(node)
        _write_for_each_dimension(node)
        _fold_literal_operand(copy, node)
        _replace_empty_statistics(graph, node)
        _forget_what_is_overwritten(node)
    graph.eliminate_dead_code()
    graph.lint()
    copy.recompile()
    return copy


def _drop_empty_operands(node: fx.Node) -> None:
    """A cache that is empty at first is joined to what comes in."""
    if str(node.target) != "aten.cat.default" or any(
        not isinstance(size, int) for part in node.args[0] for size in result(part).shape
    ):
        return
    parts = [part for part in node.args[0] if 0 not in result(part).shape]
    same = all(result(part).dtype == result(node).dtype for part in parts)
    if parts and same and len(parts) < len(node.args[0]):
        node.args = (parts, *node.args[1:])


def _write_for_each_dimension(node: fx.Node) -> None:
    image, lists = _CONVOLUTIONS.get(str(node.target), (0, ()))
    for position in lists:
        values = node.args[position]
        if len(values) == 1:
            rank = result(node.args[image]).dim() - 2
            node.update_arg(position, [values[0]] * rank)


def _fold_literal_operand(graph_module: fx.GraphModule, node: fx.Node) -> None:
    if str(node.target) not in _BINARY or not isinstance(node.args[1], fx.Node):
        return
    if str(node.target) == "aten.mul.Tensor" and _literal(graph_module, node.args[0]) is not None:
        node.args = (node.args[1], node.args[0])
    literal = _literal(graph_module, node.args[1])
    tensor = node.args[0].meta.get("val")
    if literal is None or not isinstance(tensor, torch.Tensor) or tensor.dim() == 0:
        return
    # A tensor without dimensions takes part in type promotion exactly like a number of its kind.
    if result(node).dtype == tensor.dtype:
        node.args = (node.args[0], literal, *node.args[2:])


def _literal(graph_module: fx.GraphModule, node: fx.Node) -> int | float | bool | None:
    while str(node.target) in _FRESH_COPIES:
        if len(node.args[0].users) != 1:
            return None
        node = node.args[0]
    if node.op != "get_attr":
        return None
    value = operator.attrgetter(node.target)(graph_module)
    if (
        not isinstance(value, torch.Tensor)
        or isinstance(value, torch.nn.Parameter)
        or value.dim() != 0
    ):
        return None
    return None if value.is_complex() else value.item()


def _replace_empty_statistics(graph: fx.Graph, node: fx.Node) -> None:
    if node.target is not operator.getitem or "batch_norm" not in str(node.args[0].target):
        return
    statistics = node.meta.get("val")
    if find_rule(node.args[0]) is None or statistics is None or statistics.numel():
        return
    with graph.inserting_before(node):
        empty = graph.call_function(
            torch.ops.aten.full.default,
            (list(statistics.shape), 0),
            {"dtype": statistics.dtype, "device": statistics.device},
        )
    empty.meta["val"] = statistics
    node.replace_all_uses_with(empty)
    graph.erase_node(node)


def _forget_what_is_overwritten(node: fx.Node) -> None:
    """As the gradient of a slice that was assigned to spells it."""
    if str(node.target) != "aten.copy.default":
        return
    over, source = (result(operand) for operand in node.args[:2])
    if str(node.args[0].target) != "aten.new_empty_strided.default":
        return
    same = over.shape == source.shape and over.dtype == source.dtype
    if same and over.stride() == source.stride():
        node.target = torch.ops.aten.clone.default
        node.args, node.kwargs = (node.args[1],), {}
