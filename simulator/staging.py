"""Take a module of any stage up to the one that is simulated, with the schedule asked for."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.tile_choice import MODES as SCHEDULES
from mlir_npu.passes.choose_tiles import SCHEDULE
from mlir_npu.passes.kernels.walk import argument_roles, functions, kernels, nested
from mlir_npu.passes.run_stages import run_stages

LAST_STAGE = "allocate"
TILE_LOOPS = ("scf.forall", "scf.for")


class WrongStage(ValueError):
    """The module is past the stage that is needed, or not of this compiler."""


def stage_of(module: ir.Operation) -> str | None:
    """The first stage that the module has yet to go through; None after the last one of ours."""
    own = functions(module)
    if any("scratch" in argument_roles(function) for function in own):
        return None
    names = {op.name for op in nested(module)}
    if any(name.startswith("llvm.") for name in names):
        raise WrongStage(f"the module is past the stage '{LAST_STAGE}': it is in LLVM's dialect")
    if any(name.startswith("npu.") for name in names):
        return "pipeline"
    if not any(_has_tensors(function) for function in own):
        return "stage"
    if any(name in names for name in TILE_LOOPS):
        return "buffers"
    found = kernels(module)
    if any(SCHEDULE in kernel.attributes for kernel in found):
        return "tile"
    return "schedule" if found else "normalise"


def _has_tensors(function: ir.Operation) -> bool:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return any(isinstance(t, ir.RankedTensorType) for t in [*type_.inputs, *type_.results])


def stage_module(module: ir.Module, schedule: str = SCHEDULES[0]) -> None:
    """Run what is missing, in place. schedule: one of SCHEDULES, for kernels that have none.

    Raises WrongStage if the schedule comes too late, and StageFailure if a stage fails.
    """
    first = stage_of(module.operation)
    if schedule != SCHEDULES[0] and first not in ("normalise", "schedule"):
        raise WrongStage(
            f"schedule '{schedule}' has to be chosen in the stage 'schedule', and the module is "
            "past it; give a module of an earlier stage"
        )
    if first is not None:
        run_stages(module, first=first, last=LAST_STAGE, schedule=schedule)
