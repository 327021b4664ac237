"""What the backward finds again instead of having it saved: a rewriting of the joint graph.

AOTAutograd traces forward and backward as one graph and cuts it; what the forward makes and the
backward reads is saved. What costs nothing to find again is given to the backward here:

* positions and masks that depend on constants only, which are then constants of the backward;
* views of inputs, so that a parameter arrives as itself, and what was made of it is kept;
* the maxima of pools, in place of their indices, which only the host makes;
* the empty statistics of batch normalization in evaluation mode;
* values that no kernel of the forward has to write (recompute.py).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch._functorch.partitioners import default_partition

from mlir_npu.lowering.dependencies import has_effect, is_view
from mlir_npu.lowering.max_pool_gradient import max_pool2d_backward, max_pool3d_backward
from mlir_npu.lowering.recompute import TAG, is_backward, recompute
from mlir_npu.lowering.support.rules import arguments, pair, tensor_problem

aten = torch.ops.aten

# gradient of a pool -> its spatial rank, the operator that finds the maxima again
_WINDOWS = {
    aten.max_pool2d_with_indices_backward.default: (2, max_pool2d_backward),
    aten.max_pool3d_with_indices_backward.default: (3, max_pool3d_backward),
}
_ADAPTIVE = {
    aten.adaptive_max_pool2d_backward.default: (2, max_pool2d_backward),
    aten.adaptive_max_pool3d_backward.default: (3, max_pool3d_backward),
}


def partition_joint(
    joint: fx.GraphModule, inputs: object, **options: object
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """(forward, backward), as AOTAutograd's default, after the rewriting."""
    for node in list(joint.graph.nodes):
        if is_backward(node):
            _read_what_is_detached(node)
            _find_maxima_again(joint.graph, node)
            _drop_empty_statistics(node)
    _take_masks_from_results(joint.graph)
    recompute(joint.graph)
    _copy_what_is_free(joint.graph)
    joint.graph.eliminate_dead_code()
    joint.graph.lint()
    joint.recompile()
    return default_partition(joint, inputs, **options)


def _read_what_is_detached(node: fx.Node) -> None:
    """Autograd saves results of calls detached, which are then returned beside the results."""
    for operand in node.all_input_nodes:
        value = operand
        while value.target is aten.detach.default and not is_backward(value):
            value = value.args[0]
        if value is not operand:
            node.replace_input_with(operand, value)


def _find_maxima_again(graph: fx.Graph, node: fx.Node) -> None:
    rank, operator_ = (_WINDOWS | _ADAPTIVE).get(node.target, (0, None))
    if operator_ is None:
        return
    call = arguments(node)
    image = call["self"].meta.get("val")
    if tensor_problem("the image", image) or image.dim() != rank + 2:
        return
    windows = _windows(call, rank) if node.target in _WINDOWS else _equal_windows(call, rank)
    if windows is None:
        return
    with graph.inserting_before(node):
        found = graph.call_function(operator_, (call["grad_output"], call["self"], *windows))
    found.meta.update(node.meta)
    node.replace_all_uses_with(found)
    graph.erase_node(node)


def _drop_empty_statistics(node: fx.Node) -> None:
    """Of a normalization in evaluation mode, whose gradient does not read them."""
    if node.target is aten.native_batch_norm_backward.default and not arguments(node)["train"]:
        node.args = (*node.args[:5], None, None, *node.args[7:])


def _windows(call: dict[str, object], rank: int) -> tuple:
    kernel = pair(call["kernel_size"], rank)
    rest = call["stride"] or kernel, call["padding"], call["dilation"]
    return list(kernel), *(list(pair(values, rank)) for values in rest), call["ceil_mode"]


def _equal_windows(call: dict[str, object], rank: int) -> tuple | None:
    sizes = (call[name].meta["val"].shape[-rank:] for name in ("self", "grad_output"))
    axes = list(zip(*sizes, strict=True))
    if any(not count or extent % count for extent, count in axes):
        return None
    kernel = [extent // count for extent, count in axes]
    return kernel, kernel, [0] * rank, [1] * rank, False


def _take_masks_from_results(graph: fx.Graph) -> None:
    """Whether x is inside of the bounds can be seen from the clamped x, and its sign from that of a
    leaky relu: where the next layer keeps these results, x need not be kept."""
    for overload, activation in _MASKS.items():
        for node in graph.find_nodes(op="call_function", target=overload):
            x = arguments(node)["self"]
            result = next((u for u in x.users if _is_activation(u, activation, node)), None)
            if result is None or not any(map(is_backward, result.users)):
                continue
            if is_backward(node) and not any(map(is_backward, x.users.keys() - {node})):
                node.replace_input_with(x, result)


_MASKS = {
    aten.hardtanh_backward.default: aten.hardtanh.default,
    aten.leaky_relu_backward.default: aten.leaky_relu.default,
}


def _is_activation(user: fx.Node, activation: torch._ops.OpOverload, gradient: fx.Node) -> bool:
    if user.target is not activation or is_backward(user):
        return False
    ours, theirs = arguments(user), arguments(gradient)
    if activation is aten.leaky_relu.default:
        slope = ours["negative_slope"]
        return slope == theirs["negative_slope"] and slope >= 0
    bounds = ours["min_val"], ours["max_val"]
    return bounds == (theirs["min_val"], theirs["max_val"]) and bounds[0] < bounds[1]


def _copy_what_is_free(graph: fx.Graph) -> None:
    constants, views = set(graph.find_nodes(op="get_attr")), set()
    copies: dict[fx.Node, fx.Node] = {}
    for node in list(graph.nodes):
        if is_backward(node):
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
    copies[node].meta[TAG] = "is_backward"


def _replaced(copies: dict[fx.Node, fx.Node]) -> Callable[[fx.Node], fx.Node]:
    return lambda node: copies.get(node, node)
