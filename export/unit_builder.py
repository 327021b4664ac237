"""A unit of a program -> its steps, its compiled parts, and the values between them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set

import torch
from torch import fx

from mlir_npu.errors import RegionCompileError
from mlir_npu.export import host_steps as host
from mlir_npu.export.collected import Collected, CompiledPart
from mlir_npu.export.entry_points import aten_calls, call_slots
from mlir_npu.export.host_calls import describe_calls
from mlir_npu.export.lifetimes import frees
from mlir_npu.export.part_code import PartCode, compile_host, compile_npu, prepare_symbol
from mlir_npu.export.plan import Result, Source, Unit, Value
from mlir_npu.export.plan_steps import Call, Copy, Host, Step, View
from mlir_npu.export.random_numbers import Random
from mlir_npu.lowering import program_plan
from mlir_npu.lowering.plan import Part, PartitionPlan
from mlir_npu.runtime.tensor_spec import TensorSpec, is_dense_in_order


class UnitBuilder:
    """graph: the unit's; static: those of its inputs that are parameters or constants."""

    def __init__(
        self,
        unit: program_plan.Unit,
        graph: PartitionPlan,
        static: Set[str],
        collected: Collected,
    ) -> None:
        self._unit, self._graph, self._all = unit, graph, collected
        self._values: dict[str, Value] = {}  # by the names of the graph
        self._static = frozenset(
            inner
            for inner, outer in zip(unit.placeholders, unit.inputs, strict=True)
            if outer in static
        )
        self._names = _program_names(unit)
        self._prepare: list[Step] = []
        self._steps: list[Step] = []

    def build(self) -> Unit:
        unit = self._unit
        for inner, outer in zip(unit.placeholders, unit.inputs, strict=True):
            self._values[inner] = self._all.values[outer]
        for part in self._graph.parts:
            if part.place == "npu":
                self._region(part)
            else:
                self._host_part(part)
        outputs = tuple(
            self._output(*pair) for pair in zip(unit.results, unit.outputs, strict=True)
        )
        kept = {name for name in (*unit.inputs, *outputs) if isinstance(name, str)}
        steps, values = tuple(self._steps), self._all.values
        own = {value.name for value in values if value.source.unit == unit.name}
        return Unit(
            name=unit.name,
            kind=unit.kind,
            location=unit.location,
            inputs=unit.inputs,
            outputs=outputs,
            saved=unit.saved,
            prepare=tuple(self._prepare),
            steps=steps,
            frees=frees(steps, own, kept, values),
        )

    def _region(self, part: Part) -> None:
        try:
            code = self._compile(part, "npu")
        except RegionCompileError:
            self._host_part(part)  # tries again what it can, and names what is left
            return
        self._call(part, code)

    def _compile(self, part: Part, engine: str) -> PartCode:
        symbol = f"{self._all.prefix}_{self._unit.name}_{part.name}"
        if engine == "npu":
            return compile_npu(part, self._all.options, self._static, symbol)
        return compile_host(part, self._all.options, symbol)

    def _host_part(self, part: Part) -> None:
        for step in host.host_steps(part, self._compile):
            match step:
                case host.Compiled(piece, code):
                    self._call(piece, code)
                case host.Look(node, root):
                    self._look(node, root)
                case host.Write(target, source):
                    names = self._values[source].name, self._values[target].name
                    self._steps.append(Copy(*names))
                case host.Draw(name, random):
                    self._draw(name, random)
                case host.Nothing(node):
                    self._own(node.name, node.meta["val"])
                case host.Left(piece, reasons):
                    self._leave(piece, reasons)

    def _call(self, part: Part, code: PartCode) -> None:
        """The steps that call a compiled part, and those that prepare its weights."""
        main, interface = code.signature.main, code.interface
        name = f"{self._unit.name}.{part.name}"
        parameters = set(interface.parameters)
        given = [
            self._conforming(
                self._values[inner], spec, self._prepare if i in parameters else self._steps
            )
            for i, (inner, spec) in enumerate(zip(part.inputs, interface.inputs, strict=True))
        ]
        given += [
            self._constant(f"{name}.constant_{i}", tensor)
            for i, tensor in enumerate(interface.constants)
        ]
        weights = [*(given[i] for i in interface.parameters), *given[len(part.inputs) :]]
        prepared = self._prepared(name, code, weights)
        results, restored = self._results(part, code)
        slots = dict(zip(main.slots("input", "parameter"), given, strict=True))
        slots |= dict(zip(main.slots("prepared"), prepared, strict=True))
        slots |= dict(zip(main.slots("output"), results, strict=True))
        call = Call(name, code.symbol, call_slots(main, slots), tuple(r.name for r in results))
        self._steps += [call, *restored]
        self._all.parts.append(CompiledPart(name, self._unit.name, code, aten_calls(part)))

    def _conforming(self, value: Value, spec: TensorSpec, steps: list[Step]) -> Value:
        """The value, or a packed copy in the memory order that compiled code reads."""
        if is_dense_in_order(value.shape, value.strides, spec.order):
            return value
        packed = self._packed(f"{self._unit.name}.{value.name}", spec)
        steps.append(Copy(value.name, packed.name))
        return packed

    def _packed(self, name: str, spec: TensorSpec) -> Value:
        """A value as compiled code has it in memory."""
        name = self._all.values.unused(f"{name}.packed")
        source = Source("computed", unit=self._unit.name)
        return self._all.values.add(name, spec.shape, spec.dense, spec.dtype, source)

    def _constant(self, name: str, tensor: torch.Tensor) -> Value:
        packed = TensorSpec.of(tensor).conform(tensor.detach())
        source = Source("constant", offset=self._all.weights.add(packed))
        return self._all.values.add(name, packed.shape, packed.stride(), packed.dtype, source)

    def _prepared(self, name: str, code: PartCode, parameters: Sequence[Value]) -> list[Value]:
        function = code.signature.prepare
        if function is None:
            return []
        source = Source("prepared", unit=self._unit.name)
        made = []
        for i, argument in enumerate(function.arguments[j] for j in function.slots("output")):
            strides = torch.empty(argument.shape, device="meta").stride()
            shape, dtype = argument.shape, argument.dtype
            made.append(self._all.values.add(f"{name}.prepared_{i}", shape, strides, dtype, source))
        slots = dict(zip(function.slots("parameter"), parameters, strict=True))
        slots |= dict(zip(function.slots("output"), made, strict=True))
        writes = tuple(value.name for value in made)
        self._prepare.append(
            Call(name, prepare_symbol(code.symbol), call_slots(function, slots), writes)
        )
        return made

    def _results(self, part: Part, code: PartCode) -> tuple[list[Value], list[Step]]:
        """What the call writes, and steps that make the part's outputs of it."""
        nodes = {node.name: node for node in part.graph_module.graph.nodes}
        written: list[Value | None] = [None] * len(code.interface.results)
        after: list[Step] = []
        for inner, output in zip(part.outputs, code.interface.outputs, strict=True):
            if output.source != "result":
                continue  # an input under its own name
            spec = code.interface.results[output.index]
            value = self._own(inner, nodes[inner].meta["val"])
            if spec.is_dense:
                written[output.index] = value
                continue
            written[output.index] = packed = self._packed(value.name, spec)
            after.append(Copy(packed.name, value.name))
        return written, after

    def _own(self, inner: str, tensor: torch.Tensor, source: Source | None = None) -> Value:
        source = source or Source("computed", unit=self._unit.name)
        name = self._name(inner)
        value = self._all.values.add(name, tensor.shape, tensor.stride(), tensor.dtype, source)
        self._values[inner] = value
        return value

    def _draw(self, inner: str, random: Random) -> None:
        drawn = torch.empty(random.shape, dtype=random.dtype, device="meta")
        source = Source("random", unit=self._unit.name, distribution=random.distribution)
        self._own(inner, drawn, source)

    def _look(self, node: fx.Node, root: fx.Node) -> None:
        view, base = node.meta["val"], root.meta["val"]
        offset = view.storage_offset() * view.itemsize - base.storage_offset() * base.itemsize
        name, of = self._name(node.name), self._values[root.name]
        shape, strides, dtype = view.shape, view.stride(), view.dtype
        value = self._all.values.add_view(name, of, offset, shape, strides, dtype, self._unit.name)
        self._values[node.name] = value
        self._steps.append(View(value.name))

    def _leave(self, part: Part, reasons: Mapping[str, str]) -> None:
        reads = tuple(self._values[inner].name for inner in part.inputs)
        nodes = {node.name: node for node in part.graph_module.graph.nodes}
        for node in part.graph_module.graph.find_nodes(op="get_attr"):
            tensor = operator.attrgetter(node.target)(part.graph_module)
            name = f"{self._unit.name}.{part.name}.{node.name}"
            self._values[node.name] = self._constant(name, tensor)
        writes = tuple(self._own(inner, nodes[inner].meta["val"]).name for inner in part.outputs)
        names = {inner: value.name for inner, value in self._values.items()}
        step = Host(describe_calls(part, reasons, names), reads, writes)
        self._steps.append(step)
        self._all.left.append(step)

    def _output(self, inner: Result, outer: str | None) -> Result:
        """The value of one result, under the name that the program knows it by."""
        if not isinstance(inner, str):
            return inner
        value = self._values[inner]
        if outer is None or outer == value.name:
            return outer
        alias = self._all.values.add_view(
            outer,
            value,
            0,
            value.shape,
            value.strides,
            getattr(torch, value.dtype),
            self._unit.name,
        )
        self._steps.append(View(alias.name))
        return alias.name

    def _name(self, inner: str) -> str:
        if inner in self._names:
            return self._names[inner]
        return self._all.values.unused(f"{self._unit.name}.{inner}")


def _program_names(unit: program_plan.Unit) -> dict[str, str]:
    """What the unit makes and the program has a name for. An input that is a result as well, and
    what is a result twice, are looked at again instead."""
    names: dict[str, str] = {}
    for inner, outer in zip(unit.results, unit.outputs, strict=True):
        if isinstance(inner, str) and outer is not None and inner not in unit.placeholders:
            names.setdefault(inner, outer)
    return names
