"""A recorded call of a model -> a plan of units, and the compiled units themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.compile_graph import CompiledGraph
from mlir_npu.lowering.program_backward import plan_backward
from mlir_npu.lowering.program_calls import graph_of_calls
from mlir_npu.lowering.program_events import CallEvent, GraphEvent, Place, ReadEvent, place_of
from mlir_npu.lowering.program_graphs import TorchGraph, graph_of_event
from mlir_npu.lowering.program_names import describe_output
from mlir_npu.lowering.program_plan import (
    Check,
    ProgramPlan,
    Run,
    Unit,
    View,
)
from mlir_npu.lowering.program_record import Recording
from mlir_npu.lowering.program_sharing import Made, overlaps, split_outputs
from mlir_npu.lowering.program_units import (
    Argument,
    CompiledUnit,
    TensorType,
    compile_unit,
    part_calls,
)
from mlir_npu.lowering.program_values import Known, ProgramValues
from mlir_npu.lowering.roles import readable
from mlir_npu.options import Options

_DATA_DEPENDENT = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)


@dataclass(frozen=True, eq=False)
class BuiltProgram:
    """units: compiled graphs by the names of their units; tensors: parameters and constants of the
    plan; results: the tensors of the recorded call behind `plan.results`."""

    plan: ProgramPlan
    units: Mapping[str, CompiledGraph]
    tensors: Mapping[str, torch.Tensor]
    results: tuple[torch.Tensor, ...]


def build_program(
    recording: Recording, known: Known, options: Options, *, train: bool
) -> BuiltProgram:
    """Raises CaptureError, and what compile_graph raises."""
    builder = _Builder(ProgramValues(known), options)
    items = _items(recording)
    results = [
        leaf for leaf in pytree.tree_leaves(recording.result) if isinstance(leaf, torch.Tensor)
    ]
    needed = {id(tensor) for tensor in results}
    for item in items:
        used = item.inputs if isinstance(item, TorchGraph) else (item.tensor, item.listed)
        needed |= {id(tensor) for tensor in used}
    for item in items:
        if isinstance(item, TorchGraph):
            builder.add_graph(item, needed)
        else:
            builder.add_check(item)
    return builder.finish(results, train)


def _items(recording: Recording) -> list[TorchGraph | ReadEvent]:
    """Graphs, and numbers to check; calls that follow each other under one mode are one graph."""
    events = [e for e in recording.events if not isinstance(e, ReadEvent) or e.decides]
    items: list[TorchGraph | ReadEvent] = []
    for (kind, _), group in itertools.groupby(
        events, lambda e: (type(e), getattr(e, "mode", None))
    ):
        if kind is CallEvent:
            items.append(graph_of_calls(list(group)))
        else:
            items += [graph_of_event(event) if kind is GraphEvent else event for event in group]
    return items


@dataclass
class _Builder:
    values: ProgramValues
    options: Options
    units: dict[str, Unit] = field(default_factory=dict)
    compiled: dict[str, CompiledUnit] = field(default_factory=dict)
    graphs: dict[str, CompiledGraph] = field(default_factory=dict)
    steps: list[Run | View | Check] = field(default_factory=list)

    def add_check(self, event: ReadEvent) -> None:
        name = self._resolve(event.tensor, "", event.place)
        place = event.place
        self.steps.append(Check(name, event.number, place.location, place.line))

    def add_graph(self, graph: TorchGraph, needed: set[int]) -> None:
        nodes = graph.graph_module.graph.find_nodes(op="placeholder")
        inputs = [
            self._resolve(tensor, source, _place_of_use(node, graph.place))
            for tensor, source, node in zip(graph.inputs, graph.sources, nodes, strict=True)
        ]
        wanted = {
            id(tensor): (tensor, node)
            for tensor, node in graph.made
            if id(tensor) in needed and (tensor not in self.values or id(tensor) in graph.rewritten)
        }
        for tensor in graph.inputs:
            if id(tensor) in graph.rewritten:
                self.values.forget(tensor, graph.place)
        bases, views = split_outputs(graph, list(wanted.values()), self.values)
        unit = self._compile(graph, inputs, [node for _, node in bases])
        self._add_unit(graph, inputs, bases, unit)
        for tensor, node in views:
            if tensor.requires_grad and not self.values.base_of(tensor)[1].requires_grad:
                self._refuse_gradient(node, graph.place)
            self._add_view(tensor, describe_output(node), node.name)

    def _compile(
        self, graph: TorchGraph, inputs: Sequence[str], outputs: Sequence[fx.Node]
    ) -> CompiledUnit:
        arguments = [
            Argument(value.label, value.kind in ("parameter", "buffer"))
            for value in map(self.values.table.__getitem__, inputs)
        ]
        module, place = graph.with_outputs(outputs), graph.place
        try:
            types = [
                replace(TensorType.of(tensor), requires_grad=id(tensor) in graph.wanted)
                for tensor in graph.inputs
            ]
            return compile_unit(module, types, arguments, self.options, mode=graph.mode)
        except CaptureError as error:
            if error.location is not None:
                raise
            raise CaptureError(error.reason, place.location, place.line) from None
        except _DATA_DEPENDENT as error:
            cause = str(error).partition("\n")[0]
            what = "a number" if "_local_scalar_dense" in cause else "a size"
            reason = f"{what} depends on the contents of a tensor ({cause})"
            raise CaptureError(reason, place.location, place.line) from None

    def _add_unit(
        self,
        graph: TorchGraph,
        inputs: Sequence[str],
        bases: Sequence[Made],
        compiled: CompiledUnit,
    ) -> None:
        number = sum(unit.kind != "backward" for unit in self.units.values())
        if not bases and not compiled.written:
            return
        for index, (tensor, node) in enumerate(bases):
            if tensor.requires_grad and index not in compiled.tangents:
                self._refuse_gradient(node, graph.place)
        name = self.values.names.new(
            f"{'forward' if graph.origin == 'graph' else 'between'}_{number}"
        )
        plan = compiled.forward.plan
        own = [inputs[index] for index in compiled.takes]
        local: dict[Any, str] = dict(zip(plan.placeholders, own))
        for position, (tensor, node) in zip(compiled.returns, bases, strict=True):
            result, type_ = plan.results[position], compiled.forward_types[position]
            if result not in local:
                type_ = replace(type_, requires_grad=tensor.requires_grad)
                local[result] = self.values.new(result, "output", type_, describe_output(node))
            self.values.bind(tensor, local[result])
        for result, type_ in zip(plan.results, compiled.forward_types):
            if type_ is not None and result not in local:
                type_ = replace(type_, requires_grad=False)
                label = f"saved by {name}: {result}"
                local[result] = self.values.new(result, "saved", type_, label)
        outputs = [local.get(result) for result in plan.results]
        self.units[name] = Unit(
            name,
            "forward" if compiled.backward else "inference",
            graph.origin,
            graph.place.location,
            tuple(own),
            tuple(outputs),
            tuple(outputs[compiled.saved_from :]),
            tuple(inputs[index] for index in compiled.written),
            plan.placeholders,
            plan.results,
            part_calls(compiled.forward),
        )
        self.compiled[name] = compiled
        self.graphs[name] = compiled.forward
        self.steps.append(Run(name))

    def _refuse_gradient(self, node: fx.Node, otherwise: Place) -> None:
        """The value got a gradient by other means than the calls that were seen."""
        place = place_of(node)
        place = place if place.location else otherwise
        raise CaptureError(
            "the gradient of this value is defined by Python that Dynamo does not compile (by a "
            "torch.autograd.Function, say)",
            place.location,
            place.line,
        )

    def _add_view(self, tensor: torch.Tensor, label: str, wanted: str) -> str:
        base_name, base = self.values.base_of(tensor)
        type_ = TensorType.of(tensor)
        if tensor.requires_grad and overlaps(type_):
            raise CaptureError(f"{label} has elements that share memory, and a gradient")
        name = self.values.new(wanted, "output", type_, f"{label}, a view of {base_name}")
        self.values.bind(tensor, name)
        offset = tensor.storage_offset() - base.storage_offset()
        self.steps.append(View(name, base_name, type_.shape, type_.strides, offset))
        return name

    def _resolve(self, tensor: torch.Tensor, source: str, place: Place) -> str:
        """The value that a tensor is. Raises CaptureError."""
        name = self.values.find(tensor, source, place)
        if name is not None:
            return name
        return self._add_view(tensor, readable(source), readable(source) or "view")

    def finish(self, results: Iterable[torch.Tensor], train: bool) -> BuiltProgram:
        found: dict[str, torch.Tensor] = {}
        for tensor in results:
            name = self._resolve(tensor, "the result", Place())
            if self.values.table[name].kind == "output":
                found.setdefault(name, tensor)
        backward = plan_backward(self, list(found) if train else [])
        kinds = {name: value.kind for name, value in self.values.table.items()}
        plan = ProgramPlan(
            train,
            self.values.table,
            tuple(name for name, kind in kinds.items() if kind == "input"),
            tuple(name for name, kind in kinds.items() if kind in ("parameter", "buffer")),
            tuple(name for name, kind in kinds.items() if kind == "constant"),
            tuple(self.units.values()),
            tuple(self.steps),
            tuple(backward.steps),
            tuple(found),
            tuple(backward.saved),
            tuple(backward.tangents),
            tuple(backward.gradients),
        )
        return BuiltProgram(plan, self.graphs, self.values.tensors, tuple(found.values()))


def _place_of_use(node: fx.Node, otherwise: Place) -> Place:
    places = (place_of(user) for user in node.users)
    return next((place for place in places if place.location), otherwise)
