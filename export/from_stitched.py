"""What a program over all graph breaks hands over to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from mlir_npu.errors import ExportError
from mlir_npu.export.from_program import output_leaves, program_inputs
from mlir_npu.export.plan import ProgramOutput
from mlir_npu.export.program import Exportable

if TYPE_CHECKING:
    from mlir_npu.stitched import Stitched


def exportable_stitched(stitched: Stitched, parameters: Sequence[torch.Tensor]) -> Exportable:
    """parameters: those of the plan, as they are now. Raises ExportError."""
    plan = stitched.plan
    if stitched.options is None:
        raise ExportError(
            "a program that was loaded has no graphs any more: export it where it is captured"
        )
    inputs = {plan.values[name].source: name for name in plan.inputs}
    places = {
        "result": plan.results,
        "input": {t.index: inputs.get(t.name) for t in stitched.inputs.tensors},
        "model": (*plan.parameters, *plan.constants),
    }
    tangents = {plan.values[name].of: name for name in plan.tangents}
    outputs = output_leaves(stitched.result, places)
    return Exportable(
        plan,
        stitched.graphs,
        dict(zip(plan.parameters, parameters, strict=True)) | dict(stitched.constants),
        program_inputs(stitched.inputs, inputs),
        tuple(_with_tangent(output, tangents) for output in outputs),
        stitched.options,
    )


def _with_tangent(output: ProgramOutput, tangents: Mapping[str | None, str]) -> ProgramOutput:
    tangent = tangents.get(output.value) if isinstance(output.value, str) else None
    return ProgramOutput(output.path, output.value, tangent)
