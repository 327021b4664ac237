"""The backward of a program: its units in reverse, and which gradients add up to which tangent."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.program_forward import ProgramForward
from mlir_npu.lowering.program_plan import Gradient, Run, Sum, Unit, View, ViewGradient
from mlir_npu.lowering.program_units import CompiledUnit, part_calls
from mlir_npu.lowering.tensor_type import TensorType
from mlir_npu.runtime.tensor_spec import dense_strides, memory_order, nearest_order


@dataclass
class PlannedBackward:
    steps: list[Run | Sum | ViewGradient] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)
    tangents: list[str] = field(default_factory=list)
    gradients: list[Gradient] = field(default_factory=list)


def plan_backward(forward: ProgramForward, results: list[str]) -> PlannedBackward:
    """Adds values and backward units to those of the forward."""
    return _Backward(forward).plan(results)


class _Backward:
    def __init__(self, forward: ProgramForward) -> None:
        self._forward = forward
        self._plan = PlannedBackward()
        self._parts: dict[str, list[str]] = defaultdict(list)  # gradients that add up, by value
        self._from_caller: set[str] = set()

    def plan(self, results: list[str]) -> PlannedBackward:
        forward, plan = self._forward, self._plan
        for result in results:
            if forward.values.table[result].requires_grad:
                tangent = self._new(f"tangent_{result}", "tangent", self._type(result), result)
                plan.tangents.append(tangent)
                self._parts[result].append(tangent)
                self._from_caller.add(tangent)
        for step in reversed(forward.steps):
            if isinstance(step, View):
                self._through_view(step)
            elif isinstance(step, Run) and forward.compiled[step.unit].backward is not None:
                self._through_unit(forward.units[step.unit], forward.compiled[step.unit])
        for name, value in list(forward.values.table.items()):
            if value.requires_grad and value.kind in ("input", "parameter"):
                total = self._total(name, self._type(name)) if self._parts[name] else None
                plan.gradients.append(Gradient(name, total))
        return plan

    def _through_view(self, view: View) -> None:
        values = self._forward.values.table
        if not (values[view.output].requires_grad and values[view.base].requires_grad):
            return
        if not self._parts[view.output]:
            return
        total = self._total(view.output, self._type(view.output))
        base = self._type(view.base)
        if base.strides != values[view.base].strides:
            raise CaptureError(
                f"{values[view.output].label} has a gradient, and what it is a view of has gaps"
            )
        name = self._new(f"grad_{view.base}", "gradient", base, view.base)
        self._plan.steps.append(ViewGradient(name, total, view))
        self._parts[view.base].append(name)

    def _through_unit(self, unit: Unit, compiled: CompiledUnit) -> None:
        forward, graph = self._forward, compiled.backward
        outputs = [unit.outputs[compiled.returns[index]] for index in compiled.tangents]
        if not any(self._parts[output] for output in outputs):
            return
        totals = [
            self._total(output, type_)
            for output, type_ in zip(outputs, compiled.tangent_types, strict=True)
        ]
        name = forward.values.names.new(f"backward_{unit.name.rpartition('_')[2]}")
        taken = (*unit.saved, *totals)
        outputs = self._add_gradients(unit, compiled, taken)
        if all(output is None or output in taken for output in outputs):
            return
        forward.units[name] = Unit(
            name=name,
            kind="backward",
            origin=unit.origin,
            location=unit.location,
            inputs=taken,
            outputs=outputs,
            saved=(),
            written=(),
            placeholders=graph.plan.placeholders,
            results=graph.plan.results,
            parts=part_calls(graph),
        )
        forward.graphs[name] = graph
        self._plan.steps.append(Run(name))
        self._plan.saved += [name for name in unit.saved if name not in self._plan.saved]

    def _add_gradients(
        self, unit: Unit, compiled: CompiledUnit, taken: Sequence[str]
    ) -> tuple[str | None, ...]:
        """The values of all results of the backward of a unit, each a part of the gradient of one
        of the unit's inputs. taken: what the backward takes."""
        plan = compiled.backward.plan
        values: dict[object, str] = dict(zip(plan.placeholders, taken, strict=True))
        inputs = dict(zip(compiled.takes, unit.inputs, strict=True))
        outputs: list[str | None] = []
        for result, index, type_ in zip(
            plan.results, compiled.gradients, compiled.gradient_types, strict=True
        ):
            if index is None:
                outputs.append(None)
                continue
            of = inputs[index]
            if result not in values:
                values[result] = self._new(f"grad_{of}", "gradient", type_, of)
            self._parts[of].append(values[result])
            outputs.append(values[result])
        return tuple(outputs)

    def _total(self, value: str, type_: TensorType) -> str:
        """The sum of what is known of the gradient of a value, laid out as its reader takes it."""
        parts = self._parts[value]
        if len(parts) == 1 and parts[0] not in self._from_caller:
            if self._forward.values.table[parts[0]].strides == type_.strides:
                return parts[0]
        name = self._new(f"grad_{value}", "gradient", type_, value)
        self._plan.steps.append(Sum(name, tuple(parts)))
        self._parts[value] = [name]
        return name

    def _type(self, name: str) -> TensorType:
        """Dense, as a gradient is even where its value repeats elements."""
        value = self._forward.values.table[name]
        dtype = getattr(torch, value.dtype)
        if memory_order(value.shape, value.strides) is None:
            order = nearest_order(value.shape, value.strides)
            return TensorType(value.shape, dense_strides(value.shape, order), dtype)
        return TensorType(value.shape, value.strides, dtype)

    def _new(self, wanted: str, kind: str, type_: TensorType, of: str) -> str:
        label = f"gradient of {self._forward.values.table[of].label}"
        type_ = dataclasses.replace(type_, requires_grad=False)
        return self._forward.values.new(wanted, kind, type_, label, of=of)
