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
from mlir_npu.lowering.program_graphs import TorchGraph, of_calls, of_graph
from mlir_npu.lowering.program_names import Names, describe_output
from mlir_npu.lowering.program_plan import (
    Check,
    PartCall,
    ProgramPlan,
    Run,
    Unit,
    Value,
    View,
)
from mlir_npu.lowering.program_record import (
    CallEvent,
    GraphEvent,
    Place,
    ReadEvent,
    Recording,
    place_of,
)
from mlir_npu.lowering.program_units import Argument, CompiledUnit, TensorType, compile_unit
from mlir_npu.lowering.roles import readable
from mlir_npu.options import Options

RESERVED = ("inputs", "parameters", "saved", "tangents", "forward", "backward", "torch", "args")
_DATA_DEPENDENT = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)


@dataclass(frozen=True, eq=False)
class Known:
    """What was there before the call. inputs: tensors by the name of the input; state: parameters
    and buffers by name; existing: all tensors of the process, by id."""

    inputs: Mapping[str, torch.Tensor]
    state: Mapping[str, torch.Tensor]
    existing: Mapping[int, torch.Tensor]


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
    builder = _Builder(known, options)
    items = _items(recording)
    results = [
        leaf for leaf in pytree.tree_leaves(recording.result) if isinstance(leaf, torch.Tensor)
    ]
    needed = {id(tensor) for tensor in results}
    for item in items:
        used = item.inputs if isinstance(item, TorchGraph) else (item.tensor,)
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
    for (kind, _), group in itertools.groupby(events, lambda e: (type(e), getattr(e, "grad", 0))):
        if kind is CallEvent:
            items.append(of_calls(list(group)))
        else:
            items += [of_graph(event) if kind is GraphEvent else event for event in group]
    return items


@dataclass
class _Builder:
    known: Known
    options: Options
    names: Names = field(default_factory=lambda: Names(RESERVED))
    values: dict[str, Value] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    compiled: dict[str, CompiledUnit] = field(default_factory=dict)
    graphs: dict[str, CompiledGraph] = field(default_factory=dict)
    steps: list[Run | View | Check] = field(default_factory=list)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._named: dict[int, str] = {}
        self._alive: list[torch.Tensor] = []  # ids stay those of these
        self._bases: dict[int, tuple[str, torch.Tensor]] = {}
        self._state = {id(tensor): name for name, tensor in self.known.state.items()}
        for name, tensor in self.known.inputs.items():
            self._take(tensor, "input", f"argument {name}", name)

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
            if id(tensor) in needed
            and (id(tensor) not in self._named or id(tensor) in graph.rewritten)
        }
        for tensor in graph.inputs:
            if id(tensor) in graph.rewritten:
                self._forget(tensor, graph.place)
        bases, views = self._split(graph, list(wanted.values()))
        unit = self._compile(graph, inputs, [node for _, node in bases])
        self._add_unit(graph, inputs, bases, unit)
        for tensor, node in views:
            if tensor.requires_grad and not self._bases[_storage(tensor)][1].requires_grad:
                self._refuse_gradient(node, graph.place)
            self._add_view(tensor, describe_output(node), node.name)

    def _forget(self, tensor: torch.Tensor, place: Place) -> None:
        """Its memory has a new value, which the graph returns as an output of its own."""
        storage = _storage(tensor)
        if self.values[self._named[id(tensor)]].kind != "output" or any(
            _storage(other) == storage and other is not tensor for other in self._alive
        ):
            raise CaptureError(
                "it changes, in place, a tensor with a gradient that shares memory with another",
                place.location,
                place.line,
            )
        del self._bases[storage], self._named[id(tensor)]

    def _split(
        self, graph: TorchGraph, wanted: Sequence[tuple[torch.Tensor, fx.Node]]
    ) -> tuple[list, list]:
        """Outputs with memory of their own, and views of those or of what was there before."""
        groups: dict[int, list[tuple[torch.Tensor, fx.Node]]] = {}
        for tensor, node in wanted:
            groups.setdefault(_storage(tensor), []).append((tensor, node))
        bases, views = [], []
        for storage, group in groups.items():
            if storage in self._bases:
                views += group
                continue
            base = group[0] if len(group) == 1 else _base(graph, group)
            bases.append(base)
            views += [(tensor, node) for tensor, node in group if tensor is not base[0]]
        return bases, views

    def _compile(
        self, graph: TorchGraph, inputs: Sequence[str], outputs: Sequence[fx.Node]
    ) -> CompiledUnit:
        arguments = [
            Argument(self.values[name].label, self.values[name].kind in ("parameter", "buffer"))
            for name in inputs
        ]
        module, place = graph.with_outputs(outputs), graph.place
        try:
            types = [
                replace(TensorType.of(tensor), requires_grad=id(tensor) in graph.wanted)
                for tensor in graph.inputs
            ]
            return compile_unit(module, types, arguments, self.options, grad=graph.grad)
        except CaptureError as error:
            if error.location is not None:
                raise
            raise CaptureError(error.reason, place.location, place.line) from None
        except _DATA_DEPENDENT as error:
            reason = f"a size depends on the contents of a tensor ({error})"
            raise CaptureError(reason, place.location, place.line) from None

    def _add_unit(
        self,
        graph: TorchGraph,
        inputs: Sequence[str],
        bases: Sequence[tuple[torch.Tensor, fx.Node]],
        compiled: CompiledUnit,
    ) -> None:
        number = sum(unit.kind != "backward" for unit in self.units.values())
        if not bases and not compiled.written:
            return
        for index, (tensor, node) in enumerate(bases):
            if tensor.requires_grad and index not in compiled.tangents:
                self._refuse_gradient(node, graph.place)
        name = self.names.new(f"{'forward' if graph.origin == 'graph' else 'between'}_{number}")
        plan = compiled.forward.plan
        own = [inputs[index] for index in compiled.takes]
        local: dict[Any, str] = dict(zip(plan.placeholders, own))
        for position, (tensor, node) in zip(compiled.returns, bases, strict=True):
            result, type_ = plan.results[position], compiled.forward_types[position]
            if result not in local:
                local[result] = self._new(result, "output", type_, describe_output(node), tensor)
            self._name(tensor, local[result])
        for result, type_ in zip(plan.results, compiled.forward_types):
            if type_ is not None and result not in local:
                local[result] = self._new(result, "saved", type_, f"saved by {name}: {result}")
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
        base_name, base = self._bases[_storage(tensor)]
        type_ = TensorType.of(tensor)
        name = self._new(wanted, "output", type_, f"{label}, a view of {base_name}", tensor)
        self._name(tensor, name)
        if tensor.requires_grad and _overlaps(type_):
            raise CaptureError(f"{label} has elements that share memory, and a gradient")
        offset = tensor.storage_offset() - base.storage_offset()
        self.steps.append(View(name, base_name, type_.shape, type_.strides, offset))
        return name

    def _resolve(self, tensor: torch.Tensor, source: str, place: Place) -> str:
        if id(tensor) in self._named:
            return self._named[id(tensor)]
        if id(tensor) in self._state:
            name = self._state[id(tensor)]
            parameter = isinstance(tensor, torch.nn.Parameter)
            kind = "parameter" if parameter else "buffer"
            return self._take(tensor, kind, f"{kind} {name}", name)
        if id(tensor) in self.known.existing:
            name = readable(source) if source else "constant"
            if isinstance(tensor, torch.nn.Parameter) or tensor.requires_grad:
                return self._take(tensor, "parameter", f"parameter {name}", name)
            return self._take(tensor, "constant", f"constant {name}", None)
        if _storage(tensor) in self._bases and not tensor.requires_grad:
            return self._add_view(tensor, f"{readable(source)}", readable(source) or "view")
        raise CaptureError(
            f"a tensor of unknown origin comes in here ({readable(source) or 'between graphs'}: "
            f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}): Python made it from "
            "values that a program does not have",
            place.location,
            place.line,
        )

    def _take(self, tensor: torch.Tensor, kind: str, label: str, source: str | None) -> str:
        name = self._new(source or label, kind, TensorType.of(tensor), label, tensor, source)
        self._name(tensor, name)
        if kind != "input":
            self.tensors[name] = tensor
        return name

    def _new(
        self,
        wanted: str,
        kind: str,
        type_: TensorType,
        label: str,
        tensor: torch.Tensor | None = None,
        source: str | None = None,
        of: str | None = None,
    ) -> str:
        name = self.names.new(str(wanted))
        dtype = str(type_.dtype).removeprefix("torch.")
        gradient = tensor is not None and tensor.requires_grad
        self.values[name] = Value(
            name, kind, type_.shape, type_.strides, dtype, label, source, of, gradient
        )
        return name

    def _name(self, tensor: torch.Tensor, name: str) -> None:
        self._named[id(tensor)] = name
        self._alive.append(tensor)
        self._bases.setdefault(_storage(tensor), (name, tensor))

    def finish(self, results: Iterable[torch.Tensor], train: bool) -> BuiltProgram:
        found: dict[str, torch.Tensor] = {}
        for tensor in results:
            name = self._resolve(tensor, "the result", Place())
            if self.values[name].kind == "output":
                found.setdefault(name, tensor)
        backward = plan_backward(self, list(found))
        kinds = {name: value.kind for name, value in self.values.items()}
        plan = ProgramPlan(
            train,
            self.values,
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
        return BuiltProgram(plan, self.graphs, self.tensors, tuple(found.values()))


def part_calls(compiled: CompiledGraph) -> tuple[PartCall, ...]:
    engines = {part.name: part.engine for part in compiled.report.parts}
    return tuple(
        PartCall(part.name, part.place, engines[part.name], part.inputs, part.outputs)
        for part in compiled.plan.parts
    )


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _overlaps(type_: TensorType) -> bool:
    """Whether elements may share memory, but for repeated ones (stride 0)."""
    reach = 0
    for stride, size in sorted(zip(type_.strides, type_.shape)):
        if size > 1 and stride:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def _place_of_use(node: fx.Node, otherwise: Place) -> Place:
    places = (place_of(user) for user in node.users)
    return next((place for place in places if place.location), otherwise)


def _base(
    graph: TorchGraph, group: Sequence[tuple[torch.Tensor, fx.Node]]
) -> tuple[torch.Tensor, fx.Node]:
    """The output whose memory holds that of all of them, or the value in the graph that they are
    views of."""
    size = group[0][0].untyped_storage().nbytes()
    for tensor, node in group:
        if tensor.storage_offset() == 0 and tensor.numel() * tensor.element_size() == size:
            return tensor, node
    tensor, node = group[0]
    value = node.meta.get("example_value")
    for root in graph.graph_module.graph.nodes:
        found = root.meta.get("example_value")
        if (
            isinstance(found, torch.Tensor)
            and isinstance(value, torch.Tensor)
            and _storage(found) == _storage(value)
        ):
            stand_in = tensor.detach().as_strided(
                found.shape, found.stride(), found.storage_offset()
            )
            return stand_in.requires_grad_(found.requires_grad), root
    raise CaptureError(
        "results share memory that none of them holds", graph.place.location, graph.place.line
    )
