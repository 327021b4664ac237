"""A program cut down to some of its units: whatever others make, the caller gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from mlir_npu.errors import ExportError
from mlir_npu.export.plan import ProgramInput, ProgramOutput
from mlir_npu.export.program import Exportable
from mlir_npu.lowering.program_plan import Gradient, ProgramPlan, Run, Unit, Value

_GIVEN = ("input", "parameter", "buffer", "constant", "tangent")


def with_units(program: Exportable, names: Collection[str]) -> Exportable:
    """Raises ExportError for names that are none."""
    plan = program.plan
    known = [unit.name for unit in plan.units]
    for name in names:
        if name not in known:
            raise ExportError(f"no unit is called {name!r}; there are {', '.join(known)}")
    units = tuple(unit for unit in plan.units if unit.name in names)
    made = {name for unit in units for name in unit.outputs}
    taken = list(dict.fromkeys(name for unit in units for name in unit.inputs))
    values = {name: _given(plan.values[name], name in made) for name in taken}
    values |= {name: plan.values[name] for name in made if name and name not in values}
    inputs = [name for name in taken if values[name].kind == "input"]
    outputs = _outputs(units)
    cut = ProgramPlan(
        plan.train,
        values,
        tuple(inputs),
        tuple(name for name in plan.parameters if name in values),
        tuple(name for name in plan.constants if name in values),
        units,
        tuple(Run(unit.name) for unit in units if unit.kind != "backward"),
        tuple(Run(unit.name) for unit in units if unit.kind == "backward"),
        tuple(outputs),
        (),
        tuple(name for name in taken if values[name].kind == "tangent"),
        tuple(_gradients(units, values)),
    )
    return dataclasses.replace(
        program,
        plan=cut,
        inputs=tuple(ProgramInput(name, name) for name in inputs),
        results=tuple(ProgramOutput(name, name) for name in outputs),
    )


def _given(value: Value, made: bool) -> Value:
    if made or value.kind in _GIVEN:
        return value
    kind = "tangent" if value.kind == "gradient" else "input"
    return dataclasses.replace(value, kind=kind, source=value.name)


def _outputs(units: Sequence[Unit]) -> list[str]:
    """Of forwards, each once."""
    found = (name for unit in units if unit.kind != "backward" for name in unit.outputs)
    return list(dict.fromkeys(name for name in found if name is not None))


def _gradients(units: Sequence[Unit], values: dict[str, Value]) -> list[Gradient]:
    found = (name for unit in units if unit.kind == "backward" for name in unit.outputs)
    return [Gradient(values[name].of, name) for name in dict.fromkeys(found) if name is not None]
