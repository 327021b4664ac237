"""A captured program -> its plan, with objects, IR and weights beside it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mlir_npu.dialect.host_cpu import cpu_flags
from mlir_npu.errors import ExportError
from mlir_npu.export.collected import Collected, CompiledPart
from mlir_npu.export.plan import Gradient, Plan, ProgramInput, ProgramOutput, Source, Unit
from mlir_npu.export.plan_steps import Add, Check, Copy, Run, Step, View, Zero
from mlir_npu.export.unit_builder import UnitBuilder
from mlir_npu.lowering import program_plan
from mlir_npu.lowering.plan import PartitionPlan
from mlir_npu.lowering.program_plan import ProgramPlan
from mlir_npu.options import Options
from mlir_npu.version import __version__


@dataclass(frozen=True)
class Exportable:
    """What a capture hands over.

    graphs: of the units, by name; tensors: parameters, buffers and constants, by the names of their
    values; inputs, results: of a call, in order.
    """

    plan: ProgramPlan
    graphs: Mapping[str, PartitionPlan]
    tensors: Mapping[str, torch.Tensor]
    inputs: tuple[ProgramInput, ...]
    results: tuple[ProgramOutput, ...]
    options: Options


@dataclass(frozen=True)
class Exported:
    plan: Plan
    parts: tuple[CompiledPart, ...]
    weights: bytes


def export_program(
    program: Exportable, name: str, files: Mapping[str, str], host_calls: bool
) -> Exported:
    """Compile every part for any linker. Raises ExportError for calls without machine code, unless
    `host_calls`."""
    source, collected = program.plan, Collected(name, program.options)
    for value in source.values.values():
        _add_given(value, program.tensors, collected)
    builder = _StepBuilder(program, collected)
    forward, backward = builder.build(source.forward), builder.build(source.backward)
    if collected.left and not host_calls:
        calls = [call for step in collected.left for call in step.calls if call.reason]
        raise ExportError.of_calls([(c.op, c.location, c.reason) for c in calls])
    signatures = [part.code.signature for part in collected.parts]
    weights = collected.weights.contents
    plan = Plan(
        name=name,
        producer={"mlir_npu": __version__, "torch": torch.__version__},
        machine=_machine(program.options),
        files=files,
        threads=program.options.num_threads or 0,
        workspace_bytes=max((s.workspace_bytes for s in signatures), default=0),
        scratch_bytes=max((s.scratch_bytes for s in signatures), default=0),
        weights_bytes=len(weights),
        inputs=program.inputs,
        outputs=program.results,
        gradients=tuple(Gradient(g.of, g.gradient) for g in source.gradients),
        forward=forward,
        backward=backward,
        units=tuple(builder.units),
        parts=(),
        values=tuple(collected.values),
    )
    return Exported(plan, tuple(collected.parts), weights)


def _add_given(
    value: program_plan.Value, tensors: Mapping[str, torch.Tensor], collected: Collected
) -> None:
    """Values that are there before any step; the others come with the steps that make them."""
    if value.kind not in ("input", "parameter", "buffer", "constant", "tangent"):
        return
    offset = None
    if value.kind in ("parameter", "buffer", "constant"):
        offset = collected.weights.add(tensors[value.name])
    source = Source(value.kind, value.source, value.of, offset)
    collected.values.add(value.name, value.shape, value.strides, _dtype(value.dtype), source)


class _StepBuilder:
    """The program's steps, in terms of those of a plan; units are built when they are met."""

    def __init__(self, program: Exportable, collected: Collected) -> None:
        self._program, self._all = program, collected
        plan = program.plan
        changing = {name for unit in plan.units for name in unit.written}
        self._static = {*plan.parameters, *plan.constants} - changing
        self.units: list[Unit] = []

    def build(self, steps: Sequence[Any]) -> tuple[Step, ...]:
        return tuple(made for step in steps for made in self._build(step))

    def _build(self, step: Any) -> list[Step]:
        match step:
            case program_plan.Run(name):
                unit, graph = self._program.plan.unit(name), self._program.graphs[name]
                self.units.append(UnitBuilder(unit, graph, self._static, self._all).build())
                return [Run(name)]
            case program_plan.Check():
                return [Check(step.value, step.expected, step.location)]
            case program_plan.View():
                return [self._view(step, step.output, step.base)]
            case program_plan.Sum(output, inputs):
                return self._sum(output, inputs)
            case program_plan.ViewGradient(output, gradient, view):
                self._own(output)
                name = self._all.values.unused(f"{output}.view")
                return [Zero(output), self._view(view, name, output), Add(gradient, name)]
        raise ExportError(f"the program has a step that a plan does not know: {step}")

    def _sum(self, output: str, inputs: Sequence[str]) -> list[Step]:
        value = self._program.plan.values[output]
        same = [self._all.values[name] for name in inputs]
        if len(same) == 1 and same[0].strides == value.strides:
            dtype = _dtype(value.dtype)
            self._all.values.add_view(output, same[0], 0, value.shape, value.strides, dtype)
            return [View(output)]
        self._own(output)
        if not inputs:
            return [Zero(output)]
        first, *others = inputs
        return [Copy(first, output), *(Add(other, output) for other in others)]

    def _own(self, name: str) -> None:
        value = self._program.plan.values[name]
        source = Source("computed", of=value.of)
        self._all.values.add(name, value.shape, value.strides, _dtype(value.dtype), source)

    def _view(self, view: program_plan.View, name: str, base: str) -> View:
        of = self._all.values[base]
        dtype = _dtype(of.dtype)
        offset = view.offset * dtype.itemsize
        self._all.values.add_view(name, of, offset, view.shape, view.strides, dtype)
        return View(name)


def _machine(options: Options) -> dict[str, Any]:
    """What the objects were compiled for: they run on CPUs that know these instructions."""
    known = ("avx", "fma", "bmi", "f16c", "popcnt", "sse", "ssse", "lzcnt", "abm", "movbe", "amx")
    features = sorted(flag for flag in cpu_flags() if flag.startswith(known))
    return {"arch": platform.machine(), "target": options.target, "features": features}


def _dtype(name: str) -> torch.dtype:
    return getattr(torch, name)
