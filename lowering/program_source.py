"""A program as the text of a Python module.

It has a function for every unit, which calls the compiled parts in order, and on top of them

    forward(inputs, parameters) -> (results, saved)
    backward(saved, tangents) -> gradients

Its free names are the compiled parts and the constants: exec it with these as globals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from mlir_npu.lowering.compile_graph import CompiledGraph
from mlir_npu.lowering.plan import PartitionPlan
from mlir_npu.lowering.program_plan import (
    Check,
    ProgramPlan,
    Run,
    Sum,
    Unit,
    Value,
    View,
    ViewGradient,
)
from mlir_npu.lowering.report import describe_part
from mlir_npu.lowering.stitch import WIDTH, fit_lines, stitched_source

Step = Run | View | Check | Sum | ViewGradient


def part_name(unit: str, part: str) -> str:
    """What a part of a unit is called in the module."""
    return f"{unit}_{part}"


def unit_source(unit: Unit, graph: CompiledGraph, values: Mapping[str, Value]) -> str:
    """The function of one unit."""
    plan = graph.plan
    parts = tuple(
        dataclasses.replace(part, name=part_name(unit.name, part.name)) for part in plan.parts
    )
    renamed = PartitionPlan(
        plan.graph_module, plan.placeholders, parts, plan.results, plan.rejections
    )
    comments = {
        name: _describe(values[value]) for name, value in zip(unit.placeholders, unit.inputs)
    }
    comments |= {part_name(unit.name, r.name): describe_part(r) for r in graph.report.parts}
    return stitched_source(renamed, unit.name, comments)


def program_source(plan: ProgramPlan, units: Mapping[str, str]) -> str:
    """The module. units: the functions of the units, by name."""
    functions = [units[unit.name] for unit in plan.units]
    steps = {type(step).__name__ for step in (*plan.forward, *plan.backward)}
    helpers = {"Check": "check", "Sum": "total", "ViewGradient": "view_gradient"}
    used = sorted(helper for step, helper in helpers.items() if step in steps)
    imports = ["import torch"]
    if used:
        imports += ["", f"from mlir_npu.runtime.program_steps import {', '.join(used)}"]
    parts = ["\n".join(imports) + "\n", *functions, _forward(plan)]
    if plan.train:
        parts.append(_backward(plan))
    return "\n\n".join(parts)


def _forward(plan: ProgramPlan) -> str:
    writer = _Writer(plan)
    kept = {*plan.results, *plan.saved, *plan.inputs, *plan.parameters, *plan.constants}
    lines = [
        "def forward(inputs, parameters):",
        *writer.unpack("inputs", plan.inputs),
        *writer.unpack("parameters", plan.parameters),
        *writer.steps(plan.forward, kept),
        *_returned("results", plan.results, plan),
        *_returned("saved", plan.saved, plan),
        "    return results, saved",
    ]
    return "\n".join(lines) + "\n"


def _backward(plan: ProgramPlan) -> str:
    writer = _Writer(plan)
    gradients = [gradient.gradient for gradient in plan.gradients]
    kept = {name for name in gradients if name is not None}
    lines = [
        "def backward(saved, tangents):",
        *writer.unpack("saved", plan.saved),
        *writer.unpack("tangents", plan.tangents),
        *writer.steps(plan.backward, kept | {*plan.saved, *plan.tangents}),
        "    return (",
        *(
            f"        {gradient.gradient},  # of {plan.values[gradient.of].label}"
            for gradient in plan.gradients
        ),
        "    )",
    ]
    return "\n".join(lines) + "\n"


def _returned(name: str, values: Sequence[str], plan: ProgramPlan) -> list[str]:
    if not values:
        return [f"    {name} = ()"]
    inner = [f"        {value},  # {plan.values[value].label}" for value in values]
    return [f"    {name} = (", *inner, "    )"]


class _Writer:
    def __init__(self, plan: ProgramPlan) -> None:
        self._plan, self._values = plan, plan.values

    def unpack(self, source: str, names: Sequence[str]) -> list[str]:
        if not names:
            return []
        inner = [f"        {name},  # {_describe(self._values[name])}" for name in names]
        return ["    (", *inner, f"    ) = {source}"]

    def steps(self, steps: Sequence[Step], kept: set[str]) -> list[str]:
        """Values go after their last use, unless they are kept."""
        last: dict[str, int] = {}
        for number, step in enumerate(steps):
            last |= dict.fromkeys((*self._taken(step), *self._made(step)), number)
        lines = []
        for number, step in enumerate(steps):
            lines += getattr(self, f"_{type(step).__name__.lower()}")(step)
            dead = [n for n, at in last.items() if at == number and n not in kept]
            if dead and number < len(steps) - 1:
                lines.append(f"    del {', '.join(dead)}")
        return lines

    def _taken(self, step: Step) -> Iterable[str]:
        if isinstance(step, Run):
            return self._plan.unit(step.unit).inputs
        if isinstance(step, Sum):
            return step.inputs
        return (
            (step.gradient,)
            if isinstance(step, ViewGradient)
            else (step.base,)
            if isinstance(step, View)
            else (step.value,)
        )

    def _made(self, step: Step) -> Iterable[str]:
        if isinstance(step, Run):
            unit = self._plan.unit(step.unit)
            return [n for n in dict.fromkeys(unit.outputs) if n and n not in unit.inputs]
        return () if isinstance(step, Check) else (step.output,)

    def _run(self, step: Run) -> list[str]:
        unit = self._plan.unit(step.unit)
        seen = set(unit.inputs)
        targets = []
        for name in unit.outputs:
            targets.append("_" if name is None or name in seen else name)
            seen.add(name)
        lines = [f"    # {unit.origin} at {unit.location}"] if unit.location else []
        head, inputs = f"{unit.name}([", ", ".join(unit.inputs)
        if all(target == "_" for target in targets):
            return [*lines, *fit_lines(f"    {head}", inputs, "])")]
        left = ", ".join(targets) + ("," if len(targets) == 1 else "")
        if len(left) > WIDTH // 2:
            lines += fit_lines("    (", left, f") = {head}", fits=False)
        else:
            lines.append(f"    {left if len(targets) > 1 else f'({left})'} = {head}")
        return [*lines[:-1], *fit_lines(lines[-1], inputs, "])")]

    def _view(self, step: View) -> list[str]:
        start = f"{step.base}.storage_offset() + {step.offset}" if step.offset else ""
        offset = f", {start or f'{step.base}.storage_offset()'}"
        return [f"    {step.output} = {step.base}.as_strided({step.shape}, {step.strides}{offset})"]

    def _check(self, step: Check) -> list[str]:
        where = f"{step.location} ({step.line})"
        return [f"    check({step.value}, {_number(step.expected)}, {where!r})"]

    def _sum(self, step: Sum) -> list[str]:
        value = self._values[step.output]
        parts = ", ".join(step.inputs) + ("," if len(step.inputs) == 1 else "")
        return [
            f"    # {value.label}",
            *fit_lines(f"    {step.output} = total(", f"({parts}), {_layout(value)}", ")"),
        ]

    def _viewgradient(self, step: ViewGradient) -> list[str]:
        value, view = self._values[step.output], step.view
        return [
            f"    # {value.label}",
            *fit_lines(
                f"    {step.output} = view_gradient(",
                f"{step.gradient}, ({_layout(value)}), "
                f"({view.shape}, {view.strides}, {view.offset})",
                ")",
            ),
        ]


def _layout(value: Value) -> str:
    return f"{value.shape}, {value.strides}, torch.{value.dtype}"


def _number(value: bool | int | float) -> str:
    finite = value == value and abs(value) != float("inf")
    return repr(value) if finite else f"float({str(value)!r})"


def _describe(value: Value) -> str:
    return f"{value.label}: {value.dtype}[{', '.join(map(str, value.shape))}]"
