"""Take a module of any stage up to the one that is simulated, with the schedule that was asked for.

Schedules: "pipelined" as chosen for the target; "serial", the same tiles with one buffer each, so
that nothing overlaps; "untiled", every kernel as one tile on a target whose memories have no end.
"""

from __future__ import annotations

from dataclasses import replace

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import LARGEST, Target, set_target, target_of
from mlir_npu.passes.choose_tiles import SCHEDULE
from mlir_npu.passes.kernels.describe import describe
from mlir_npu.passes.kernels.walk import argument_roles, functions, kernels, nested
from mlir_npu.passes.pipelines import run_stages, stage_names

SCHEDULES = ("pipelined", "serial", "untiled")
LAST_STAGE = "allocate"
_CHOICES = ("reduction_tile", "order", "buffers", "acc_buffers")


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
    scheduled = [SCHEDULE in kernel.attributes for kernel in kernels(module)]
    if not any(_has_tensors(function) for function in own):
        return "stage"
    if any(scheduled):
        return "tile"
    return "schedule" if scheduled else "normalise"


def _has_tensors(function: ir.Operation) -> bool:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return any(isinstance(t, ir.RankedTensorType) for t in [*type_.inputs, *type_.results])


def stage_module(module: ir.Module, schedule: str = "pipelined") -> None:
    """Run what is missing, in place. Raises WrongStage, and StageFailure if a stage fails."""
    first = stage_of(module.operation)
    names = stage_names()
    if schedule != "pipelined" and (first is None or names.index(first) > names.index("tile")):
        raise WrongStage(
            f"schedule '{schedule}' has to be set before the stage 'tile', and the module is past "
            "it; give a module of an earlier stage"
        )
    if first is None:
        return
    if names.index(first) <= names.index("schedule"):
        if first == "normalise":
            run_stages(module, first=first, last=first)
        if schedule == "untiled":
            set_target(module.operation, _endless(target_of(module.operation)))
        run_stages(module, first="schedule", last="schedule")
        first = "tile"
    with module.context, ir.Location.unknown():
        set_schedule(module.operation, schedule)
    run_stages(module, first=first, last=LAST_STAGE)


def _endless(target: Target) -> Target:
    """The same machine with memories that nothing fills."""
    sram, acc = replace(target.sram, bytes=LARGEST), replace(target.acc, bytes=LARGEST)
    return replace(target, sram=sram, acc=acc)


def set_schedule(module: ir.Operation, schedule: str) -> None:
    """Change the schedules that kernels carry to one of SCHEDULES."""
    if schedule == "untiled":
        set_target(module, _endless(target_of(module)))
    for kernel in kernels(module):
        entries = {e.name: e.attr for e in ir.DictAttr(kernel.attributes[SCHEDULE])}
        if schedule == "serial":
            entries |= {
                name: ir.IntegerAttr.get(entries[name].type, 1)
                for name in ("buffers", "acc_buffers")
                if name in entries
            }
        if schedule == "untiled":
            entries = {k: v for k, v in entries.items() if k not in _CHOICES}
            entries["tile"] = ir.DenseI64ArrayAttr.get(_whole_tile(kernel))
        kernel.attributes[SCHEDULE] = ir.DictAttr.get(entries)


def _whole_tile(kernel: ir.Operation) -> list[int]:
    """0 for whole loops; loops that ops cannot take whole, such as groups, keep their tile."""
    shape = describe(kernel, lanes=1)
    if shape is None:
        return []
    loops = [shape.loops[i] for i in shape.parallel]
    return [0 if loop.forced in (None, loop.extent) else loop.forced for loop in loops]
