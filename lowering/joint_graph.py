"""What the backward finds again instead of having it saved: a rewriting of the joint graph.

AOTAutograd traces forward and backward as one graph and cuts it; what the forward makes and the
backward reads is saved. What costs nothing to find again is given to the backward here:

* positions and masks that depend on constants only, which are then constants of the backward;
* views of inputs, so that a parameter arrives as itself, and what was made of it is kept;
* the maxima of pools, in place of their indices, which only the host makes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch._functorch.partitioners import default_partition

from mlir_npu.lowering.dependencies import has_effect, is_view
from mlir_npu.lowering.max_pool_gradient import max_pool2d_backward
from mlir_npu.lowering.support.rules import arguments, pair, tensor_problem

_TAG = "partitioner_tag"
_POOL_BACKWARD = torch.ops.aten.max_pool2d_with_indices_backward.default


def partition_joint(
    joint: fx.GraphModule, inputs: object, **options: object
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """(forward, backward), as AOTAutograd's default, after the rewriting."""
    for node in list(joint.graph.nodes):
        if _is_backward(node):
            _find_maxima_again(joint.graph, node)
    _copy_what_is_free(joint.graph)
    joint.graph.eliminate_dead_code()
    joint.graph.lint()
    joint.recompile()
    return default_partition(joint, inputs, **options)


def _is_backward(node: fx.Node) -> bool:
    return node.op == "call_function" and node.meta.get(_TAG) == "is_backward"


def _find_maxima_again(graph: fx.Graph, node: fx.Node) -> None:
    if node.target is not _POOL_BACKWARD:
        return
    call = arguments(node)
    image = call["self"].meta.get("val")
    if tensor_problem("the image", image) or image.dim() != 4:
        return
    kernel = pair(call["kernel_size"])
    windows = kernel, pair(call["stride"] or kernel), pair(call["padding"]), pair(call["dilation"])
    with graph.inserting_before(node):
        found = graph.call_function(
            max_pool2d_backward,
            (call["grad_output"], call["self"], *map(list, windows), call["ceil_mode"]),
        )
    found.meta.update(node.meta)
    node.replace_all_uses_with(found)
    graph.erase_node(node)


def _copy_what_is_free(graph: fx.Graph) -> None:
    constants, views = set(graph.find_nodes(op="get_attr")), set()
    copies: dict[fx.Node, fx.Node] = {}
    for node in list(graph.nodes):
        if _is_backward(node):
            for operand in node.all_input_nodes:
                if operand.op == "call_function" and operand in constants | views:
                    _copy(graph, operand, node, copies)
            node.args, node.kwargs = fx.map_arg((node.args, node.kwargs), _replaced(copies))
        elif _depends_on(node, constants):
            constants.add(node)
        elif is_view(node) and (node.args[0].op == "placeholder" or node.args[0] in views):
            if all(operand in constants for operand in node.all_input_nodes[1:]):
                views.add(node)


def _depends_on(node: fx.Node, constants: set[fx.Node]) -> bool:
    """Whether a call depends on nothing but these."""
    if node.op != "call_function" or has_effect(node):
        return False
    return all(operand in constants for operand in node.all_input_nodes)


def _copy(graph: fx.Graph, node: fx.Node, before: fx.Node, copies: dict[fx.Node, fx.Node]) -> None:
    """Copy a call, and the calls that it depends on, for the backward. The first of its users comes
    first, so that the copy does for all."""
    if node in copies or node.op != "call_function":
        return
    for operand in node.all_input_nodes:
        _copy(graph, operand, before, copies)
    with graph.inserting_before(before):
        copies[node] = graph.node_copy(node, _replaced(copies))
    copies[node].meta[_TAG] = "is_backward"


def _replaced(copies: dict[fx.Node, fx.Node]) -> Callable[[fx.Node], fx.Node]:
    return lambda node: copies.get(node, node)
