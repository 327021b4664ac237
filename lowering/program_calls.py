"""Calls of PyTorch between two graphs of Dynamo, one after the other -> one graph to compile."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.program_events import CallEvent
from mlir_npu.lowering.program_graphs import TorchGraph, copy_written


def graph_of_calls(events: Sequence[CallEvent]) -> TorchGraph:
    """events: one or more, all in the mode of the first. Raises CaptureError for a call that
    returns tensors in anything but tuples and lists."""
    return _Builder().build(events)


class _Builder:
    def __init__(self) -> None:
        self._graph = fx.Graph()
        self._nodes: dict[int, fx.Node] = {}
        self._inputs: list[torch.Tensor] = []
        self._made: list[tuple[torch.Tensor, fx.Node]] = []

    def build(self, events: Sequence[CallEvent]) -> TorchGraph:
        for tensor in _tensors_from_outside(events):
            self._nodes[id(tensor)] = self._graph.placeholder(f"input_{len(self._inputs)}")
            self._inputs.append(tensor)
        for event in events:
            self._add(event)
        self._graph.output(())
        module = fx.GraphModule(torch.nn.Module(), self._graph)
        own = set(map(id, self._inputs))
        written = {id(t): t for event in events for t in event.written if id(t) in own}
        self._made += copy_written(module, self._inputs, list(written.values()))
        return TorchGraph(
            origin="between",
            graph_module=module,
            inputs=tuple(self._inputs),
            sources=("",) * len(self._inputs),
            made=tuple(self._made),
            mode=events[0].mode,
            place=events[0].place,
            wanted=_wanted_when_taken(events),
            rewritten=frozenset(written),
        )

    def _add(self, event: CallEvent) -> None:
        function, arguments = _function_and_arguments(event)
        arguments, keywords = pytree.tree_map_only(
            torch.Tensor,
            lambda tensor: self._nodes.get(id(tensor), tensor),
            (arguments, dict(event.keywords)),
        )
        node = self._graph.call_function(function, tuple(arguments), keywords)
        file, _, line = (event.place.location or "?:0").rpartition(":")
        node.meta["stack_trace"] = f'  File "{file}", line {line}, in forward'
        self._remember(event, event.result, node)

    def _remember(self, event: CallEvent, result: Any, node: fx.Node) -> None:
        """The tensors of a result, which this node computes."""
        if isinstance(result, torch.Tensor):
            if id(result) not in self._nodes:
                self._nodes[id(result)] = node
                self._made.append((result, node))
        elif isinstance(result, (tuple, list)):
            for index, item in enumerate(result):
                self._remember_item(event, item, node, index)
        elif _tensors(result):
            place = event.place
            raise CaptureError(
                f"{event.function} between graphs returns a {type(result).__name__} with tensors",
                place.location,
                place.line,
            )

    def _remember_item(self, event: CallEvent, item: Any, whole: fx.Node, index: int) -> None:
        if not isinstance(item, (torch.Tensor, tuple, list)):
            return
        node = self._graph.call_function(operator.getitem, (whole, index))
        node.meta["stack_trace"] = whole.meta["stack_trace"]
        self._remember(event, item, node)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _taken(event: CallEvent) -> list[torch.Tensor]:
    return _tensors((event.arguments, dict(event.keywords)))


def _tensors_from_outside(events: Sequence[CallEvent]) -> list[torch.Tensor]:
    """Tensors that the calls take and do not make, in order."""
    made: set[int] = set()
    found: dict[int, torch.Tensor] = {}
    for event in events:
        found |= {id(t): t for t in _taken(event) if id(t) not in made | found.keys()}
        made |= set(map(id, _tensors(event.result))) - found.keys()
    return list(found.values())


def _wanted_when_taken(events: Sequence[CallEvent]) -> frozenset[int]:
    """The ids of tensors that required a gradient when the first call took them."""
    seen, wanted = set(), set()
    for event in events:
        fresh = set(map(id, _taken(event))) - seen
        wanted |= fresh & event.wanted
        seen |= fresh
    return frozenset(wanted)


def _function_and_arguments(event: CallEvent) -> tuple[Any, tuple]:
    """A function that a graph can name, and its arguments: `x.T` is getattr(x, "T")."""
    function, owner = event.function, getattr(event.function, "__self__", None)
    if getattr(function, "__name__", "") == "__get__" and hasattr(owner, "__name__"):
        return getattr, (event.arguments[0], owner.__name__)
    return function, event.arguments
