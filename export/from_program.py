"""`Program.export`: what a captured program of one graph hands over to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.export.plan import ProgramInput, ProgramOutput, Result
from mlir_npu.export.program import Exportable
from mlir_npu.lowering.program_plan import ProgramPlan, Run, Unit, Value

if TYPE_CHECKING:
    from mlir_npu.lowering.capture_compile import Executable
    from mlir_npu.lowering.capture_inputs import Inputs
    from mlir_npu.lowering.capture_result import Leaf, ResultPlan
    from mlir_npu.options import Options

UNIT = "inference"


def exportable(
    executable: Executable | None,
    inputs: Inputs,
    result: ResultPlan,
    names: Sequence[str],
    tensors: Sequence[torch.Tensor],
    options: Options,
) -> Exportable:
    """A program of one graph, or none, that neither writes to what it is given nor returns views.
    names, tensors: of the model."""
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
        program_inputs(inputs, {t.name: given["input", t.index].name for t in inputs.tensors}),
        output_leaves(result, places),
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


def program_inputs(inputs: Inputs, values: Mapping[str, str]) -> tuple[ProgramInput, ...]:
    """All arguments in order. values: of those that are tensors, by their names; others are not
    looked at."""
    found = {t.index: ProgramInput(t.name, values.get(t.name)) for t in inputs.tensors}
    found |= {c.index: ProgramInput(c.name, None, repr(c.value)) for c in inputs.constants}
    return tuple(found[index] for index in sorted(found))


def output_leaves(result: ResultPlan, places: Mapping[str, Any]) -> tuple[ProgramOutput, ...]:
    """Of the model's result. places: names of values, by source and index."""
    tree = pytree.tree_unflatten(result.leaves, result.tree)
    return tuple(
        ProgramOutput(pytree.keystr(path), _leaf(leaf, places))
        for path, leaf in pytree.tree_leaves_with_path(tree)
    )


def _leaf(leaf: Leaf, places: Mapping[str, Any]) -> Result:
    if leaf.source == "constant":
        return leaf.value if isinstance(leaf.value, (bool, int, float)) else None
    return places[leaf.source][leaf.index]
