"""Runs the stages of `pipelines`, each followed by its check.

A stage that fails raises StageFailure, which holds the IR before the stage, so that the failure can
be reproduced with one command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from mlir_npu.passes.analysis.tile_choice import MODES
from mlir_npu.passes.pipelines import Stage, stage_names, stages

if TYPE_CHECKING:  # a process that has its compiling done elsewhere catches failures, without MLIR
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.passes.diagnostics import Diagnostic


class StageFailure(Exception):
    """A stage failed: stage, pass_name: which one, and in which pass, by name; pipeline: what ran;
    diagnostics: what was said; ir_before: text of the module before the stage."""

    def __init__(
        self,
        stage: Stage,
        pass_name: str,
        diagnostics: tuple[Diagnostic, ...],
        ir_before: str,
    ):
        super().__init__(stage, pass_name, diagnostics, ir_before)  # what a copy is made from
        self.stage = stage.name
        self.pipeline = stage.pipeline
        self.pass_name = pass_name
        self.diagnostics = diagnostics
        self.ir_before = ir_before

    def __str__(self) -> str:
        messages = "; ".join(diagnostic.message for diagnostic in self.diagnostics)
        return f"stage '{self.stage}', pass '{self.pass_name}': {messages}"

    def reproduction(self, path: str) -> str:
        """The command that repeats the failure once `ir_before` has been written to `path`."""
        return f"npu-opt {shlex.quote(path)} --pass-pipeline={shlex.quote(self.pipeline)}"


def run_stages(
    module: ir.Module,
    on_stage: Callable[[str, ir.Module], None] | None = None,
    *,
    first: str | None = None,
    last: str | None = None,
    schedule: str = MODES[0],
    winograd: bool = True,
) -> None:
    """Run the stages from `first` to `last`, all by default; the module needs an `npu.target`.

    schedule, winograd: see `stages`. `on_stage(name, module)` is called after every stage that
    passed its check. Raises StageFailure, and ValueError for a stage that does not exist.
    """
    names = stage_names()
    for name in (first, last):
        if name is not None and name not in names:
            raise ValueError(f"no stage is called '{name}'; there are {', '.join(names)}")
    begin = names.index(first) if first else 0
    end = names.index(last) + 1 if last else len(names)
    for stage in stages(schedule, winograd)[begin:end]:
        run_stage(module, stage)
        if on_stage is not None:
            on_stage(stage.name, module)


def run_stage(module: ir.Module, stage: Stage) -> None:
    """Run one stage and its check. Raises StageFailure.

    The module is verified once, at the end. If that or a pass fails, the stage runs again with a
    check after every pass, to tell which one it was.
    """
    from mlir_npu.passes.diagnostics import Diagnostic
    from mlir_npu.passes.pass_manager import PipelineFailure
    from mlir_npu.passes.verify_stage import StageViolation

    before = module.operation.clone(False)
    done: list[str] = []
    try:
        _run_and_check(module, stage, before, done)
    except PipelineFailure as failure:
        name, diagnostics = failure.pass_name, tuple(failure.diagnostics)
        raise StageFailure(stage, name, diagnostics, before.get_asm()) from failure
    except StageViolation as violation:
        asm = before.get_asm()
        raise StageFailure(stage, "verify-stage", violation.diagnostics, asm) from violation
    except Exception as error:  # a fault of a pass: reported like any failure, with its traceback
        name = (*stage.passes, "verify-stage")[len(done)].partition("{")[0]
        text = f"internal error: {type(error).__name__}: {error}"
        diagnostics = (Diagnostic("error", "loc(unknown)", None, text),)
        raise StageFailure(stage, name, diagnostics, before.get_asm()) from error


def _run_and_check(module: ir.Module, stage: Stage, before: ir.Operation, done: list[str]) -> None:
    """done: takes the names of the passes that have run. Raises PipelineFailure, StageViolation and
    whatever a pass with a fault raises."""
    from mlir_npu.passes.pass_manager import run_pipeline
    from mlir_npu.passes.verify_stage import StageViolation, verify_stage

    try:
        run_pipeline(
            module,
            stage.pipeline,
            after_each=lambda name, _: done.append(name),
            verify_each=False,
        )
        verify_stage(module, stage.name)
    except StageViolation:
        raise
    except Exception:
        run_pipeline(before.clone(False), stage.pipeline)  # raises for the pass that it was
        raise
