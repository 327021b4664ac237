"""`Program.export`: what a captured program of one graph hands over to be written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.errors import ExportError
from mlir_npu.export.files import LEVELS, file_names, write_program
from mlir_npu.export.plan import ProgramInput, ProgramOutput, Result
from mlir_npu.export.program import Exportable, export_program
from mlir_npu.lowering.program_plan import ProgramPlan, Run, Unit, Value

if TYPE_CHECKING:
    from mlir_npu.lowering.capture_compile import Executable
    from mlir_npu.lowering.capture_inputs import Inputs
    from mlir_npu.lowering.capture_result import Leaf, ResultPlan
    from mlir_npu.options import Options

UNIT = "inference"


def export_to(
    directory: str | Path,
    program: Exportable,
    *,
    name: str,
    levels: Collection[str],
    host_calls: bool,
) -> Path:
    """Write the program; the path of its plan. Raises ExportError, before anything is written."""
    if not name.isidentifier() or not name.isascii():
        raise ExportError(f"{name!r} is no name for C: letters, digits and _, no digit first")
    unknown = [level for level in levels if level not in LEVELS]
    if unknown:
        raise ExportError(f"no level is called {unknown[0]!r}; there are {', '.join(LEVELS)}")
    exported = export_program(program, name, file_names(name, levels), host_calls)
    return write_program(exported, Path(directory), levels)


def exportable(
    executable: Executable | None,
    inputs: Inputs,
    result: ResultPlan,
    names: Sequence[str],
    tensors: Sequence[torch.Tensor],
    options: Options,
) -> Exportable:
    """A program of one graph, or none. names, tensors: of the model. Raises ExportError."""
    if executable is not None and executable.call is not executable.inner.call:
        raise ExportError(
            "the model writes to its inputs or buffers, or returns views of inputs or of each "
            "other: return copies (clone), or capture it with train=True"
        )
    given = {("input", t.index): _input(t) for t in inputs.tensors}
    given |= {("model", i): _model_tensor(*pair) for i, pair in enumerate(zip(names, tensors))}
    values = {value.name: value for value in given.values()}
    units, outputs = (), ()
    if executable is not None:
        unit = _unit(executable, [given[a.source, a.index].name for a in executable.arguments])
        units, outputs = (unit,), unit.outputs
    plan = ProgramPlan(
        train=False,
        values=values,
        inputs=tuple(given["input", t.index].name for t in inputs.tensors),
        parameters=tuple(given["model", i].name for i in range(len(tensors))),
        constants=(),
        units=units,
        forward=tuple(Run(unit.name) for unit in units),
        backward=(),
        results=tuple(dict.fromkeys(name for name in outputs if isinstance(name, str))),
        saved=(),
        tangents=(),
        gradients=(),
    )
    places = {
        "result": outputs,
        "input": {t.index: given["input", t.index].name for t in inputs.tensors},
        "model": plan.parameters,
    }
    return Exportable(
        plan,
        {UNIT: executable.inner.plan} if executable else {},
        {given["model", i].name: tensor for i, tensor in enumerate(tensors)},
        _program_inputs(inputs, given),
        tuple(
            ProgramOutput(pytree.keystr(path), _leaf(leaf, places))
            for path, leaf in pytree.tree_leaves_with_path(
                pytree.tree_unflatten(result.leaves, result.tree)
            )
        ),
        options,
    )


def _unit(executable: Executable, inputs: Sequence[str]) -> Unit:
    graph = executable.inner.plan
    known = dict(zip(graph.placeholders, inputs, strict=True))
    outputs = tuple(
        known.get(result, f"{UNIT}.{result}") if isinstance(result, str) else None
        for result in graph.results
    )
    return Unit(
        name=UNIT,
        kind="inference",
        origin="graph",
        location=None,
        inputs=tuple(inputs),
        outputs=outputs,
        saved=(),
        written=(),
        placeholders=graph.placeholders,
        results=graph.results,
        parts=(),
    )


def _input(tensor: Any) -> Value:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Value(tensor.name, "input", tensor.shape, tensor.strides, dtype, "", tensor.name)


def _model_tensor(name: str, tensor: torch.Tensor) -> Value:
    kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Value(name, kind, tuple(tensor.shape), tensor.stride(), dtype, "", name)


def _program_inputs(inputs: Inputs, given: dict) -> tuple[ProgramInput, ...]:
    found = {t.index: ProgramInput(t.name, given["input", t.index].name) for t in inputs.tensors}
    found |= {c.index: ProgramInput(c.name, None, repr(c.value)) for c in inputs.constants}
    return tuple(found[index] for index in sorted(found))


def _leaf(leaf: Leaf, places: dict) -> Result:
    if leaf.source == "constant":
        return leaf.value if isinstance(leaf.value, (bool, int, float)) else None
    return places[leaf.source][leaf.index]
