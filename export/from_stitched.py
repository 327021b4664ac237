"""What a program hands over to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.errors import ExportError
from mlir_npu.export.plan import ProgramInput, ProgramOutput, Result
from mlir_npu.export.program import Exportable

if TYPE_CHECKING:
    from mlir_npu.lowering.capture_inputs import Inputs
    from mlir_npu.lowering.capture_result import Leaf, ResultPlan
    from mlir_npu.stitched import Stitched


def exportable_stitched(stitched: Stitched, parameters: Sequence[torch.Tensor]) -> Exportable:
    """parameters: those of the plan, as they are now. Raises ExportError."""
    plan = stitched.plan
    if any(unit.name not in stitched.graphs for unit in plan.units):
        raise ExportError(
            "the program was loaded, and its graphs call what no file can name: export it where it "
            "is captured"
        )
    inputs = {plan.values[name].source: name for name in plan.inputs}
    places = {
        "result": plan.results,
        "input": {t.index: inputs.get(t.name) for t in stitched.inputs.tensors},
        "model": (*plan.parameters, *plan.constants),
    }
    tangents = {plan.values[name].of: name for name in plan.tangents}
    outputs = _outputs(stitched.result, places)
    return Exportable(
        plan,
        stitched.graphs,
        dict(zip(plan.parameters, parameters, strict=True)) | dict(stitched.constants),
        _inputs(stitched.inputs, inputs),
        tuple(_with_tangent(output, tangents) for output in outputs),
        stitched.options,
    )


def _with_tangent(output: ProgramOutput, tangents: Mapping[str | None, str]) -> ProgramOutput:
    tangent = tangents.get(output.value) if isinstance(output.value, str) else None
    return ProgramOutput(output.path, output.value, tangent)


def _inputs(inputs: Inputs, values: Mapping[str, str]) -> tuple[ProgramInput, ...]:
    """All arguments in order. values: of those that are tensors, by their names; others are not
    looked at."""
    found = {t.index: ProgramInput(t.name, values.get(t.name)) for t in inputs.tensors}
    found |= {c.index: ProgramInput(c.name, None, repr(c.value)) for c in inputs.constants}
    return tuple(found[index] for index in sorted(found))


def _outputs(result: ResultPlan, places: Mapping[str, Any]) -> tuple[ProgramOutput, ...]:
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
