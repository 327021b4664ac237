"""The forward of a program that is being built: its values, its units and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import fx
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.compile_graph import CompiledGraph
from mlir_npu.lowering.program_events import Place, ReadEvent, place_of
from mlir_npu.lowering.program_graphs import TorchGraph
from mlir_npu.lowering.program_names import describe_output
from mlir_npu.lowering.program_plan import Check, Run, Unit, View
from mlir_npu.lowering.program_sharing import Made, overlaps, split_outputs
from mlir_npu.lowering.program_units import Argument, CompiledUnit, compile_unit, part_calls
from mlir_npu.lowering.program_values import ProgramValues
from mlir_npu.lowering.roles import readable
from mlir_npu.lowering.tensor_type import TensorType
from mlir_npu.options import Options

_DATA_DEPENDENT = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)


@dataclass
class ProgramForward:
    """units, compiled: by the names of units; graphs: compiled graphs by the same names, those of
    the backward too once it is planned."""

    values: ProgramValues
    options: Options
    units: dict[str, Unit] = field(default_factory=dict)
    compiled: dict[str, CompiledUnit] = field(default_factory=dict)
    graphs: dict[str, CompiledGraph] = field(default_factory=dict)
    steps: list[Run | View | Check] = field(default_factory=list)

    def add_check(self, event: ReadEvent) -> None:
        """Raises CaptureError for a tensor of unknown origin."""
        place = event.place
        name = self.resolve(event.tensor, "", place)
        self.steps.append(Check(name, event.number, place.location, place.line))

    def add_graph(self, graph: TorchGraph, needed: set[int]) -> None:
        """needed: ids of the tensors that something reads, or the model returns. Raises
        CaptureError, and what compile_graph raises."""
        nodes = graph.graph_module.graph.find_nodes(op="placeholder")
        inputs = [
            self.resolve(tensor, source, _place_of_use(node, graph.place))
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
        compiled = self._compile(graph, inputs, [node for _, node in bases])
        if bases or compiled.written:
            self._add_unit(graph, inputs, bases, compiled)
        for tensor, node in views:
            if tensor.requires_grad and not self.values.base_of(tensor)[1].requires_grad:
                raise _gradient_of_python(node, graph.place)
            self._add_view(tensor, describe_output(node), node.name)

    def resolve(self, tensor: torch.Tensor, source: str, place: Place) -> str:
        """The value that a tensor is. source: where Dynamo found it, "" if it did not. Raises
        CaptureError for a tensor of unknown origin."""
        name = self.values.find(tensor, source, place)
        if name is not None:
            return name
        return self._add_view(tensor, readable(source), readable(source) or "view")

    def _compile(
        self, graph: TorchGraph, inputs: Sequence[str], outputs: Sequence[fx.Node]
    ) -> CompiledUnit:
        arguments = [
            Argument(value.label, value.kind in ("parameter", "buffer"))
            for value in map(self.values.table.__getitem__, inputs)
        ]
        types = [
            replace(TensorType.of(tensor), requires_grad=id(tensor) in graph.wanted)
            for tensor in graph.inputs
        ]
        module, place = graph.with_outputs(outputs), graph.place
        try:
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
        for index, (tensor, node) in enumerate(bases):
            if tensor.requires_grad and index not in compiled.tangents:
                raise _gradient_of_python(node, graph.place)
        kind = "forward" if graph.origin == "graph" else "between"
        name = self.values.names.new(f"{kind}_{len(self.units)}")
        own = tuple(inputs[index] for index in compiled.takes)
        outputs = self._add_outputs(name, own, bases, compiled)
        self.units[name] = Unit(
            name=name,
            kind="forward" if compiled.backward else "inference",
            origin=graph.origin,
            location=graph.place.location,
            inputs=own,
            outputs=outputs,
            saved=outputs[compiled.saved_from :],
            written=tuple(inputs[index] for index in compiled.written),
            placeholders=compiled.forward.plan.placeholders,
            results=compiled.forward.plan.results,
            parts=part_calls(compiled.forward),
        )
        self.compiled[name] = compiled
        self.graphs[name] = compiled.forward
        self.steps.append(Run(name))

    def _add_outputs(
        self, unit: str, inputs: Sequence[str], bases: Sequence[Made], compiled: CompiledUnit
    ) -> tuple[str | None, ...]:
        """The values of all results of a unit: what the model's tensors `bases` are, and what is
        saved."""
        plan, types = compiled.forward.plan, compiled.forward_types
        values: dict[object, str] = dict(zip(plan.placeholders, inputs, strict=True))
        for position, (tensor, node) in zip(compiled.returns, bases, strict=True):
            result = plan.results[position]
            if result not in values:
                type_ = replace(types[position], requires_grad=tensor.requires_grad)
                values[result] = self.values.new(result, "output", type_, describe_output(node))
            self.values.bind(tensor, values[result])
        for result, type_ in zip(plan.results, types, strict=True):
            if type_ is not None and result not in values:
                type_ = replace(type_, requires_grad=False)
                label = f"saved by {unit}: {result}"
                values[result] = self.values.new(result, "saved", type_, label)
        return tuple(values.get(result) for result in plan.results)

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


def _gradient_of_python(node: fx.Node, otherwise: Place) -> CaptureError:
    """For a value that got a gradient by other means than the calls that were seen."""
    place = place_of(node)
    place = place if place.location else otherwise
    return CaptureError(
        "the gradient of this value is defined by Python that Dynamo does not compile (by a "
        "torch.autograd.Function, say)",
        place.location,
        place.line,
    )


def _place_of_use(node: fx.Node, otherwise: Place) -> Place:
    places = (place_of(user) for user in node.users)
    return next((place for place in places if place.location), otherwise)
