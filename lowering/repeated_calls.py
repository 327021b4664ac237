"""Calls that a graph repeats are traced once: the next ones copy the nodes that the first became.

A call becomes the same nodes whenever its tensors have the same types, shapes and strides, and its
other arguments are equal. A network has few kinds of calls, and tracing one costs much more than
copying what came of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import (
    PythonKeyTracer,
    disable_proxy_modes_tracing,
    get_proxy_mode,
    get_proxy_slot,
    track_tensor,
)
from torch.fx.node import map_arg

_PLAIN = (
    *(bool, int, float, complex, str, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
_OF_THE_CALL = ("val", "tensor_meta", "original_aten")  # the rest says where a node comes from


class RepeatedCalls(fx.Interpreter):
    """Under make_fx. Keeps what it knows of calls for as long as it exists."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self._known: dict[Hashable, _Recorded | None] = {}

    def call_function(self, target: Callable, args: tuple, kwargs: dict) -> object:
        mode = get_proxy_mode()
        call = _Call.of(target, args, kwargs, mode.tracer) if mode is not None else None
        if call is None:
            return super().call_function(target, args, kwargs)
        if (recorded := self._known.get(call.key)) is not None:
            return recorded.repeat(call)
        last = call.tracer.graph._root.prev  # the root itself, in a graph of no nodes
        result = super().call_function(target, args, kwargs)
        if call.key not in self._known:
            self._known[call.key] = _record(call, _nodes_after(last), result)
        return result


@dataclass(frozen=True)
class _Call:
    """tensors: the arguments that are tensors, each once; nodes: what they are in the new graph."""

    key: Hashable
    tracer: PythonKeyTracer
    tensors: tuple[FakeTensor, ...]
    nodes: tuple[fx.Node, ...]

    @staticmethod
    def of(target: Callable, args: tuple, kwargs: Mapping, tracer: PythonKeyTracer) -> _Call | None:
        """None for calls that may become something else each time."""
        if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
            return None
        tensors: dict[int, FakeTensor] = {}
        try:
            key = target, _key(args, tensors), _key(tuple(sorted(kwargs.items())), tensors)
        except _NoKey:
            return None
        nodes = [_node_of(tensor, tracer) for tensor in tensors.values()]
        if not all(nodes):
            return None
        return _Call(key, tracer, tuple(tensors.values()), tuple(nodes))


class _NoKey(Exception):
    """The contents of an argument may matter, or its sizes are not known."""


def _key(value: object, tensors: dict[int, FakeTensor]) -> Hashable:
    if isinstance(value, FakeTensor):
        number = list(tensors).index(id(value)) if id(value) in tensors else len(tensors)
        tensors[id(value)] = value
        return number, _layout(value)
    if isinstance(value, (tuple, list)):
        return isinstance(value, list), tuple([_key(one, tensors) for one in value])
    if type(value) not in _PLAIN:
        raise _NoKey
    return type(value), repr(value) if isinstance(value, (float, complex)) else value


def _layout(tensor: FakeTensor) -> Hashable:
    """All that tracing can see of a tensor, but for the memory that it shares with others."""
    shape, strides, offset = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
    if any(type(size) is not int for size in (*shape, *strides, offset)):
        raise _NoKey
    flags = tensor.requires_grad, tensor.is_conj(), tensor.is_neg(), tensor.is_inference()
    return tensor.dtype, shape, strides, offset, tensor.device, tensor.layout, flags


def _node_of(tensor: Tensor, tracer: PythonKeyTracer) -> fx.Node | None:
    """None for tensors whose contents are known, or that are not in the new graph."""
    slot = get_proxy_slot(tensor, tracer, None)
    if slot is None or slot.constant is not None or getattr(tensor, "constant", None) is not None:
        return None
    return slot.proxy.node


def _nodes_after(last: fx.Node) -> Iterator[fx.Node]:
    node = last.next
    while node.op != "root":
        yield node
        node = node.next


@dataclass(frozen=True)
class _Result:
    """A tensor of its own: the node that computes it, by number."""

    node: int
    layout: Hashable


@dataclass(frozen=True)
class _Recorded:
    """nodes: what a call became; arguments: what its tensors were then; result: `_Result`s."""

    nodes: tuple[fx.Node, ...]
    arguments: tuple[fx.Node, ...]
    result: object

    def repeat(self, call: _Call) -> object:
        copies = dict(zip(self.arguments, call.nodes, strict=True))
        for node in self.nodes:
            copies[node] = _copy(node, copies, call.tracer)
        made = [copies[node] for node in self.nodes]
        with disable_proxy_modes_tracing():
            return _tensors(self.result, made, call.tracer)


def _record(call: _Call, nodes: Iterator[fx.Node], result: object) -> _Recorded | None:
    """None if nodes of another call would not do: they hold constants, or share memory."""
    made = tuple(nodes)
    numbers = {node: number for number, node in enumerate(made)}
    known = numbers.keys() | set(call.nodes)
    for node in made:
        if node.op != "call_function" or not known.issuperset(node.all_input_nodes):
            return None
    memory = {tensor.untyped_storage()._cdata for tensor in call.tensors}
    try:
        return _Recorded(made, call.nodes, _described(result, numbers, memory, call.tracer))
    except _NoKey:
        return None


def _described(
    result: object, numbers: Mapping[fx.Node, int], memory: set[int], tracer: PythonKeyTracer
) -> object:
    if result is None:
        return None
    if isinstance(result, (tuple, list)):
        return type(result)([_described(one, numbers, memory, tracer) for one in result])
    if type(result) is not FakeTensor or (node := _node_of(result, tracer)) not in numbers:
        raise _NoKey
    storage = result.untyped_storage()._cdata
    if storage in memory or result.storage_offset() or result.requires_grad:
        raise _NoKey
    memory.add(storage)
    return _Result(numbers[node], _layout(result))


def _copy(node: fx.Node, copies: Mapping[fx.Node, fx.Node], tracer: PythonKeyTracer) -> fx.Node:
    args, kwargs = map_arg((node.args, node.kwargs), copies.__getitem__)
    name = None  # of calls of ATen, make_fx leaves the overload out
    if node.target is not operator.getitem:
        name = tracer.graph._target_to_str(node.target.overloadpacket.__name__)
    copy = tracer.create_node("call_function", node.target, args, kwargs, name)
    copy.meta.update({key: node.meta[key] for key in _OF_THE_CALL if key in node.meta})
    return copy


def _tensors(result: object, made: Sequence[fx.Node], tracer: PythonKeyTracer) -> object:
    if isinstance(result, _Result):
        dtype, shape, strides, _, device, *_ = result.layout
        tensor = torch.empty_strided(shape, strides, dtype=dtype, device=device)
        track_tensor(tensor, tracer.proxy(made[result.node]), constant=None, tracer=tracer)
        return tensor
    if isinstance(result, (tuple, list)):
        return type(result)([_tensors(one, made, tracer) for one in result])
    return None
