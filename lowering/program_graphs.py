"""Recorded events -> graphs to compile, with the tensors that go in and come out.

Numbers that a graph takes from tensors (`item`) stay tensors of no dimension in it, so that all
that crosses from graph to graph is a tensor. Calls between two graphs become a graph of their own.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import fx
from torch.utils import _pytree as pytree

from mlir_npu.errors import CaptureError
from mlir_npu.lowering import number_functions as numbers
from mlir_npu.lowering.program_events import CallEvent, GraphEvent, Mode, Place, place_of

_OF_NUMBERS = {torch.sym_int: torch.int64, torch.sym_float: torch.float64}
_CHECKS = ("_check", "_check_is_size", "_assert_async", "_assert_scalar", "sym_constrain_range")


@dataclass(frozen=True, eq=False)
class TorchGraph:
    """graph_module: a placeholder for each of `inputs`; made: the tensors it makes, with their
    nodes; sources: where Dynamo found the inputs, "" for others; wanted: ids of inputs that require
    gradients; rewritten: ids of inputs that have another value from here on, which is among those
    made."""

    origin: Literal["graph", "between"]
    graph_module: fx.GraphModule
    inputs: tuple[torch.Tensor, ...]
    sources: tuple[str, ...]
    made: tuple[tuple[torch.Tensor, fx.Node], ...]
    mode: Mode
    place: Place
    wanted: frozenset[int]
    rewritten: frozenset[int]

    def with_outputs(self, nodes: Sequence[fx.Node]) -> fx.GraphModule:
        """A copy that returns the values of these nodes."""
        graph, copies = fx.Graph(), {}
        graph.graph_copy(self.graph_module.graph, copies)
        graph.output(tuple(copies[node] for node in nodes))
        module = fx.GraphModule(self.graph_module, graph)
        module.meta.clear()  # it speaks of Dynamo's own graph
        return module


def of_graph(event: GraphEvent) -> TorchGraph:
    """Raises CaptureError for numbers that become sizes, and other inputs than tensors."""
    graph, copies = fx.Graph(), {}
    original = event.graph_module.graph
    graph.graph_copy(original, copies)
    graph.output(fx.map_arg(original.output_node().args[0], copies.__getitem__))
    module = fx.GraphModule(event.graph_module, graph)
    inputs, sources = _distinct_inputs(module, event)
    _lift_tensors(module, inputs, sources)
    _keep_numbers_as_tensors(module)
    made = _copy_first(module, inputs, event.written)
    made += [
        (output, node)
        for output, node in zip(event.outputs, graph.output_node().args[0], strict=True)
        if isinstance(output, torch.Tensor) and isinstance(node, fx.Node)
    ]
    calls = (node for node in graph.nodes if node.op not in ("placeholder", "output"))
    place = next((found for found in map(place_of, calls) if found.location), Place())
    return TorchGraph(
        "graph",
        module,
        tuple(inputs),
        tuple(sources),
        tuple(made),
        event.mode,
        place,
        event.wanted,
        frozenset(map(id, event.written)),
    )


def _copy_first(
    module: fx.GraphModule, inputs: Sequence[torch.Tensor], written: Sequence[torch.Tensor]
) -> list[tuple[torch.Tensor, fx.Node]]:
    """What is written, and has a gradient, is a copy: autograd knows two values of it."""
    found, changed = [], set(map(id, written))
    for node, tensor in zip(module.graph.find_nodes(op="placeholder"), inputs):
        if id(tensor) in changed:
            with module.graph.inserting_after(node):
                copy = module.graph.call_method("clone", (node,))
            node.replace_all_uses_with(
                copy, delete_user_cb=lambda user, copy=copy: user is not copy
            )
            found.append((tensor, copy))
    return found


def _distinct_inputs(
    module: fx.GraphModule, event: GraphEvent
) -> tuple[list[torch.Tensor], list[str]]:
    first: dict[int, fx.Node] = {}
    inputs, sources = [], []
    nodes = module.graph.find_nodes(op="placeholder")
    for node, value, source in zip(nodes, event.inputs, event.sources, strict=True):
        if not isinstance(value, torch.Tensor):
            if node.users:
                raise CaptureError(f"a graph takes {source}, which is not a tensor")
            module.graph.erase_node(node)
        elif id(value) in first:
            node.replace_all_uses_with(first[id(value)])
            module.graph.erase_node(node)
        else:
            first[id(value)] = node
            inputs.append(value)
            sources.append(source)
    return inputs, sources


def _lift_tensors(module: fx.GraphModule, inputs: list[torch.Tensor], sources: list[str]) -> None:
    """Tensors that the graph holds are inputs as others are."""
    graph = module.graph
    placeholders = graph.find_nodes(op="placeholder")
    for node in graph.find_nodes(op="get_attr"):
        value = operator.attrgetter(node.target)(module)
        if not isinstance(value, torch.Tensor):
            continue
        before = placeholders[-1].next if placeholders else next(iter(graph.nodes))
        with graph.inserting_before(before):
            placeholder = graph.placeholder(node.name)
        node.replace_all_uses_with(placeholder)
        graph.erase_node(node)
        placeholders.append(placeholder)
        inputs.append(value)
        sources.append(node.target)


def _keep_numbers_as_tensors(module: fx.GraphModule) -> None:
    graph = module.graph
    for node in list(graph.nodes):
        node.meta.pop("unbacked_bindings", None)
        name = getattr(node.target, "__name__", node.target)
        if node.op == "call_function" and name in _CHECKS and not node.users:
            graph.erase_node(node)
        elif node.op == "call_method" and node.target == "item":
            with graph.inserting_after(node):
                number = graph.call_function(numbers.number, node.args)
            number.meta = {"stack_trace": node.meta.get("stack_trace")}
            node.replace_all_uses_with(number)
            graph.erase_node(node)
        elif node.op == "call_method" and node.target == "__round__":
            node.op, node.target = "call_function", numbers.rounded
        elif node.target in _OF_NUMBERS:
            node.target, node.args = torch.Tensor.to, (node.args[0], _OF_NUMBERS[node.target])
        elif node.target in numbers.OF_TENSORS:
            node.target = numbers.OF_TENSORS[node.target]
        elif node.target is torch.scalar_tensor and isinstance(node.args[0], fx.Node):
            node.target, node.args = torch.Tensor.to, (node.args[0], node.kwargs["dtype"])
            node.kwargs = {}


def of_calls(events: Sequence[CallEvent]) -> TorchGraph:
    """Calls that followed each other. Raises CaptureError."""
    return _Calls().build(events)


class _Calls:
    def __init__(self) -> None:
        self._graph = fx.Graph()
        self._nodes: dict[int, fx.Node] = {}
        self._inputs: list[torch.Tensor] = []
        self._made: list[tuple[torch.Tensor, fx.Node]] = []

    def build(self, events: Sequence[CallEvent]) -> TorchGraph:
        for tensor in _taken(events):
            self._nodes[id(tensor)] = self._graph.placeholder(f"input_{len(self._inputs)}")
            self._inputs.append(tensor)
        for event in events:
            self._add(event)
        self._graph.output(())
        module = fx.GraphModule(torch.nn.Module(), self._graph)
        own = set(map(id, self._inputs))
        written = {id(t): t for event in events for t in event.written if id(t) in own}
        self._made += _copy_first(module, self._inputs, list(written.values()))
        return TorchGraph(
            "between",
            module,
            tuple(self._inputs),
            ("",) * len(self._inputs),
            tuple(self._made),
            events[0].mode,
            events[0].place,
            _wanted_first(events),
            frozenset(written),
        )

    def _add(self, event: CallEvent) -> None:
        function, arguments = _named(event)
        arguments, keywords = pytree.tree_map(
            lambda leaf: (
                self._nodes.get(id(leaf), leaf) if isinstance(leaf, torch.Tensor) else leaf
            ),
            (arguments, dict(event.keywords)),
        )
        node = self._graph.call_function(function, tuple(arguments), keywords)
        file, _, line = (event.place.location or "?:0").rpartition(":")
        node.meta["stack_trace"] = f'  File "{file}", line {line}, in forward'
        self._learn(event, event.result, node)

    def _learn(self, event: CallEvent, result: Any, node: fx.Node) -> None:
        if isinstance(result, torch.Tensor):
            if id(result) not in self._nodes:
                self._nodes[id(result)] = node
                self._made.append((result, node))
        elif isinstance(result, (tuple, list)):
            for index, item in enumerate(result):
                if isinstance(item, (torch.Tensor, tuple, list)):
                    got = self._graph.call_function(operator.getitem, (node, index))
                    got.meta["stack_trace"] = node.meta["stack_trace"]
                    self._learn(event, item, got)
        elif any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(result)):
            place = event.place
            raise CaptureError(
                f"{event.function} between graphs returns a {type(result).__name__} with tensors",
                place.location,
                place.line,
            )


def _wanted_first(events: Sequence[CallEvent]) -> frozenset[int]:
    """Of each tensor: whether it required a gradient when the first call took it."""
    seen, wanted = set(), set()
    for event in events:
        leaves = pytree.tree_leaves((event.arguments, dict(event.keywords)))
        fresh = {id(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)} - seen
        wanted |= fresh & event.wanted
        seen |= fresh
    return frozenset(wanted)


def _named(event: CallEvent) -> tuple[Any, tuple]:
    """A function that a graph can name, and its arguments: `x.T` is getattr(x, "T")."""
    function, owner = event.function, getattr(event.function, "__self__", None)
    if getattr(function, "__name__", "") == "__get__" and hasattr(owner, "__name__"):
        return getattr, (event.arguments[0], owner.__name__)
    return function, event.arguments


def _taken(events: Iterable[CallEvent]) -> list[torch.Tensor]:
    """Tensors that the calls take and do not make, in order."""
    made: set[int] = set()
    found: dict[int, torch.Tensor] = {}
    for event in events:
        for leaf in pytree.tree_leaves((event.arguments, dict(event.keywords))):
            if isinstance(leaf, torch.Tensor) and id(leaf) not in made:
                found.setdefault(id(leaf), leaf)
        results = pytree.tree_leaves(event.result)
        made |= {id(leaf) for leaf in results if isinstance(leaf, torch.Tensor)} - found.keys()
    return list(found.values())
