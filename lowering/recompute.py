"""Which values the backward computes once more instead of having them saved: a rewriting of the
joint graph.

A value that a forward kernel passes on in registers is written to memory only for the backward, and
read there. The backward makes it again, from values that are saved in any case, if that moves fewer
bytes. Of a convolution, its normalization and SiLU, the gradient of SiLU takes the normalized image
and that of the normalization the result of the convolution, of which the former is made again.

What a convolution reads is in memory anyway, and is kept.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator

import torch
from torch import fx

from mlir_npu.lowering.dependencies import written_nodes
from mlir_npu.lowering.support.rules import arguments

aten = torch.ops.aten

TAG = "partitioner_tag"
_BATCH_NORM = aten._native_batch_norm_legit_functional.default
_POINTWISE = frozenset(
    {
        *("relu", "leaky_relu", "hardtanh", "clamp", "clamp_min", "clamp_max", "sigmoid", "tanh"),
        *("silu", "hardswish", "hardsigmoid", "gelu", "elu", "celu", "softplus", "mish"),
        *("add", "sub", "rsub", "mul", "div", "neg", "abs", "exp", "sqrt", "rsqrt", "reciprocal"),
        *("log", "log1p", "expm1", "erf", "where", "_to_copy", "maximum", "minimum", "sign", "pow"),
    }
)


def is_backward(node: fx.Node) -> bool:
    return node.op == "call_function" and node.meta.get(TAG) == "is_backward"


def recompute(graph: fx.Graph) -> None:
    """Give the backward copies of what is worth it."""
    written = {operand for node in graph.nodes for operand in written_nodes(node)}
    copied: set[fx.Node] = set()
    for node in list(graph.nodes):
        readers = [user for user in node.users if is_backward(user)]
        if not readers or is_backward(node) or not _stays_in_registers(node):
            continue
        operands = list(_operands(node))
        available = all(_is_available(x, node, written, copied) for x in operands)
        moved = sum(map(_bytes, operands))
        if not operands or not available or moved >= 2 * _bytes(node):
            continue
        twin = _copy(graph, node, min(readers))
        copied.add(node)
        for reader in readers:
            reader.replace_input_with(node, twin)


def _is_pointwise(node: fx.Node) -> bool:
    return (
        node.op == "call_function"
        and isinstance(node.target, torch._ops.OpOverload)
        and node.target.namespace == "aten"
        and node.target.overloadpacket.__name__ in _POINTWISE
    )


def _is_normalized(node: fx.Node) -> bool:
    """The result of a batch normalization with the statistics of the batch."""
    if node.target is not operator.getitem or node.args[1] != 0:
        return False
    call = node.args[0]
    if call.target is not _BATCH_NORM or not arguments(call)["training"]:
        return False
    dtypes = {x.meta["val"].dtype for x in call.all_input_nodes}
    return dtypes == {torch.float32}


def _stays_in_registers(node: fx.Node) -> bool:
    """A value whose readers in the forward can be part of the kernel that makes it."""
    if not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    if not (_is_pointwise(node) or _is_normalized(node)):
        return False
    return all(is_backward(user) or _is_pointwise(user) for user in node.users)


def _operands(node: fx.Node) -> Iterator[fx.Node]:
    """Tensors that the value is made of."""
    if not _is_normalized(node):
        yield from node.all_input_nodes
        return
    call = arguments(node.args[0])
    yield call["input"]
    yield from (call[name] for name in ("weight", "bias") if call[name] is not None)
    for place in (1, 2):
        found = [u for u in node.args[0].users if u.args[1] == place]
        yield from found[:1]


def _is_available(
    value: fx.Node, user: fx.Node, written: set[fx.Node], copied: set[fx.Node]
) -> bool:
    """Whether the backward has it in any case."""
    if value.op == "placeholder":
        return value not in written and value.meta.get(TAG) != "is_backward"
    if value.op == "get_attr":
        return True
    return value not in copied and any(is_backward(other) for other in value.users)


def _bytes(node: fx.Node) -> int:
    """For the sizes that were seen where these are symbols; without making a guard of them."""
    value = node.meta["val"]
    sizes = [size if isinstance(size, int) else size.node.hint for size in value.shape]
    return math.prod(size or 1 for size in sizes) * value.element_size()


def _copy(graph: fx.Graph, node: fx.Node, before: fx.Node) -> fx.Node:
    with graph.inserting_before(before):
        if not _is_normalized(node):
            twin = graph.node_copy(node)
            twin.meta[TAG] = "is_backward"
            return twin
        return _normalized_again(graph, node)


def _normalized_again(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """In the same steps as the forward."""
    call = arguments(node.args[0])
    image = call["input"]
    channels = [1, -1] + [1] * (image.meta["val"].dim() - 2)

    def step(target: torch._ops.OpOverload, *operands: object) -> fx.Node:
        made = graph.call_function(target, operands)
        made.meta.update(node.meta)
        values = [x.meta["val"] if isinstance(x, fx.Node) else x for x in operands]
        made.meta["val"] = target(*values)
        made.meta[TAG] = "is_backward"
        return made

    def statistic(place: int) -> fx.Node:
        return next(user for user in node.args[0].users if user.args[1] == place)

    def spread(value: fx.Node) -> fx.Node:
        return step(aten.view.default, value, channels)

    value = step(aten.sub.Tensor, image, spread(statistic(1)))
    value = step(aten.mul.Tensor, value, spread(statistic(2)))
    if call["weight"] is not None:
        value = step(aten.mul.Tensor, value, spread(call["weight"]))
    if call["bias"] is not None:
        value = step(aten.add.Tensor, value, spread(call["bias"]))
    return value
