"""A recorded graph of Dynamo -> a graph to compile, with the tensors that go in and come out.

Numbers that a graph takes from tensors (`item`) stay tensors of no dimension in it, so that all
that crosses from graph to graph is a tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import fx

from mlir_npu.errors import CaptureError
from mlir_npu.lowering import number_functions as numbers
from mlir_npu.lowering.program_assertions import take_assertions
from mlir_npu.lowering.program_events import GraphEvent, Mode, Place, ReadEvent, place_of

_OF_NUMBERS = {torch.sym_int: torch.int64, torch.sym_float: torch.float64}


@dataclass(frozen=True, eq=False)
class TorchGraph:
    """graph_module: a placeholder for each of `inputs`; made: the tensors it makes, with their
    nodes; sources: where Dynamo found the inputs, "" for others; wanted: ids of inputs that require
    gradients; rewritten: ids of inputs that have another value from here on, which is among those
    made; assertions: checks of tensors that are among those made."""

    origin: Literal["graph", "between"]
    graph_module: fx.GraphModule
    inputs: tuple[torch.Tensor, ...]
    sources: tuple[str, ...]
    made: tuple[tuple[torch.Tensor, fx.Node], ...]
    mode: Mode
    place: Place
    wanted: frozenset[int]
    rewritten: frozenset[int]
    assertions: tuple[ReadEvent, ...] = ()

    def with_outputs(self, nodes: Sequence[fx.Node]) -> fx.GraphModule:
        """A copy that returns the values of these nodes."""
        graph, copies = fx.Graph(), {}
        graph.graph_copy(self.graph_module.graph, copies)
        graph.output(tuple(copies[node] for node in nodes))
        module = fx.GraphModule(self.graph_module, graph)
        module.meta.clear()  # it speaks of Dynamo's own graph
        return module


def graph_of_event(event: GraphEvent) -> TorchGraph:
    """Raises CaptureError for numbers that become sizes, and other inputs than tensors."""
    graph, copies = fx.Graph(), {}
    original = event.graph_module.graph
    graph.graph_copy(original, copies)
    graph.output(fx.map_arg(original.output_node().args[0], copies.__getitem__))
    module = fx.GraphModule(event.graph_module, graph)
    inputs, sources = _distinct_inputs(module, event)
    _lift_tensors(module, inputs, sources)
    _keep_numbers_as_tensors(module)
    assertions = take_assertions(graph)
    made = copy_written(module, inputs, event.written)
    made += [
        (output, node)
        for output, node in zip(event.outputs, graph.output_node().args[0], strict=True)
        if isinstance(output, torch.Tensor) and isinstance(node, fx.Node)
    ]
    made += [(check.tensor, node) for check, node in assertions]
    calls = (node for node in graph.nodes if node.op not in ("placeholder", "output"))
    place = next((found for found in map(place_of, calls) if found.location), Place())
    return TorchGraph(
        origin="graph",
        graph_module=module,
        inputs=tuple(inputs),
        sources=tuple(sources),
        made=tuple(made),
        mode=event.mode,
        place=place,
        wanted=event.wanted,
        rewritten=frozenset(map(id, event.written)),
        assertions=tuple(check for check, _ in assertions),
    )


def copy_written(
    module: fx.GraphModule, inputs: Sequence[torch.Tensor], written: Sequence[torch.Tensor]
) -> list[tuple[torch.Tensor, fx.Node]]:
    """Let the graph write to copies of the inputs `written`, each returned with its node: of what
    is written and has a gradient, autograd knows two values."""
    copies, changed = [], set(map(id, written))
    placeholders = module.graph.find_nodes(op="placeholder")
    for node, tensor in zip(placeholders, inputs, strict=True):
        if id(tensor) not in changed:
            continue
        with module.graph.inserting_after(node):
            copy = module.graph.call_method("clone", (node,))
        node.replace_all_uses_with(copy, delete_user_cb=lambda user, copy=copy: user is not copy)
        copies.append((tensor, copy))
    return copies


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
        if node.op == "call_method" and node.target == "item":
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
