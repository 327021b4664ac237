"""The whole order of compilation, in one place: stages of passes from linalg on tensors to LLVM.

Every stage is a textual pipeline that `npu-opt --pass-pipeline` runs as it stands here, and every
stage ends with `verify_stage`. A stage that fails raises StageFailure, which holds the IR before
the stage, so that the failure can be reproduced with one command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir_npu.passes.analysis.tile_choice import MODES

if TYPE_CHECKING:  # a process that has its compiling done elsewhere names stages, without MLIR
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.passes.diagnostics import Diagnostic

CLEANUP = ("canonicalize", "cse")


@dataclass(frozen=True)
class Stage:
    """A name and the passes that run, in order."""

    name: str
    passes: tuple[str, ...]

    @property
    def pipeline(self) -> str:
        return pipeline_of((self,))


def pipeline_of(stages: Sequence[Stage]) -> str:
    """All passes of some stages as one pipeline."""
    return f"builtin.module({','.join(name for stage in stages for name in stage.passes)})"


STAGES = (
    # channels last, elementwise chains fused, weights packed, one function per kernel
    Stage(
        "normalise",
        (
            "strip-asserts",
            "drop-unused-results",
            *CLEANUP,
            "narrow-contractions",
            "convert-layout",
            "fuse-elementwise",
            *CLEANUP,
            "convert-conv-to-matmul",
            "convert-conv-to-winograd",
            "pack-weights",
            "form-kernels",
            "outline-prepare",
            "duplicate-function-elimination",
            "canonicalize",
            "symbol-dce",
        ),
    ),
    # every kernel carries its tile, its bytes and what bound the choice
    Stage("schedule", ("choose-tiles",)),
    # loops over tiles
    Stage("tile", ("tile-kernels",)),
    # memrefs, owned by the caller
    Stage(
        "buffers",
        (
            "eliminate-empty-tensors",
            "protect-arguments",
            "one-shot-bufferize{bufferize-function-boundaries=1"
            " function-boundary-type-conversion=identity-layout-map}",
            "canonicalize",
            "results-to-out-params",
            *CLEANUP,
            "canonicalize",
            "booleans-to-bytes",
        ),
    ),
    # tiles on chip, dram reached through DMA only
    Stage(
        "stage",
        ("assign-memory-spaces", "insert-dma", "convert-linalg-to-npu", *CLEANUP),
    ),
    # loads ahead of their tiles, stores behind them
    Stage(
        "pipeline",
        ("order-tiles", "hoist-invariant-dma", "double-buffer", *CLEANUP),
    ),
    # moves that the engine can make, none that only copy where sram is a cache; offsets
    Stage(
        "allocate",
        ("split-dma", "elide-dma", *CLEANUP, "plan-scratchpad", "plan-workspace", "canonicalize"),
    ),
    # micro-kernels and threads
    Stage(
        "cpu",
        (
            "convert-npu-to-vector",
            "strip-memory-spaces",
            "outline-parallel",
            "approximate-math",
        ),
    ),
    # the LLVM dialect, functions of bare pointers
    Stage(
        "llvm",
        (
            "scf-forall-to-for",
            *CLEANUP,
            "loop-invariant-code-motion",
            "convert-linalg-to-loops",
            "convert-vector-to-scf",
            "expand-strided-metadata",
            "lower-affine",
            "convert-scf-to-cf",
            "convert-math-to-llvm",
            "convert-math-to-libm",
            "convert-vector-to-llvm",
            "convert-ub-to-llvm",
            "convert-arith-to-llvm",
            "convert-index-to-llvm",
            "finalize-memref-to-llvm",
            "convert-cf-to-llvm",
            "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1}",
            *CLEANUP,
            "reconcile-unrealized-casts",
            "limit-code-growth",
            "insert-thread-team",
        ),
    ),
)


# host parts: computations that can share a loop over tiles fused into one kernel; results and
# intermediates owned by the caller
HOST_STAGES = (
    Stage(
        "host",
        (
            *CLEANUP,
            "linalg-generalize-named-ops",
            "linalg-fuse-elementwise-ops",
            *CLEANUP,
            "linalg-fold-unit-extent-dims",
            "linalg-fuse-elementwise-ops",
            *CLEANUP,
            "split-reductions",
            "form-loop-groups",
            "eliminate-empty-tensors",
            "protect-arguments",
            "one-shot-bufferize{bufferize-function-boundaries=1"
            " function-boundary-type-conversion=identity-layout-map}",
            "canonicalize",
            "results-to-out-params",
            *CLEANUP,
            "assign-scratch",
            "plan-scratchpad",
            "plan-workspace",
            "func.func(refback-munge-memref-copy)",
            "canonicalize",
        ),
    ),
    Stage(
        "cpu",
        (
            "arith-expand{include-bf16=true}",
            "booleans-to-bytes",
            *CLEANUP,
            "convert-linalg-to-vector",
            "strip-memory-spaces",
            "outline-parallel",
            "approximate-math",
        ),
    ),
    Stage("llvm", STAGES[-1].passes),
)


@dataclass(frozen=True)
class Recipe:
    """How one kind of module becomes machine code.

    plan: up to where all memory is planned, and a kernel is a function of pointers; encode: the
    rest, which may run on every kernel alone.
    """

    plan: tuple[Stage, ...]
    encode: tuple[Stage, ...]


LAST_PLANNED = "allocate"
HOST_RECIPE = Recipe(HOST_STAGES[:1], HOST_STAGES[1:])


class StageFailure(Exception):
    """A stage failed. `ir_before` is the module before the stage, `pipeline` what ran on it."""

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


def stages(schedule: str = MODES[0], winograd: bool = True) -> tuple[Stage, ...]:
    """STAGES for one mode of choose-tiles, with or without Winograd convolutions.

    schedule: "pipelined", "serial" or "untiled".
    """
    options = {}
    if schedule != MODES[0]:
        options["choose-tiles"] = f"choose-tiles{{mode={schedule}}}"
    if not winograd:
        options["convert-conv-to-winograd"] = "convert-conv-to-winograd{enabled=false}"
    return tuple(
        Stage(stage.name, tuple(options.get(name, name) for name in stage.passes))
        for stage in STAGES
    )


def npu_recipe(schedule: str = MODES[0], winograd: bool = True) -> Recipe:
    """The recipe of regions; for the arguments see `stages`."""
    cut = stage_names().index(LAST_PLANNED) + 1
    chosen = stages(schedule, winograd)
    return Recipe(chosen[:cut], chosen[cut:])


def stage_names() -> tuple[str, ...]:
    return tuple(stage.name for stage in STAGES)


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
    passed its check. Raises StageFailure.
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
    """Run one stage and its check."""
    from mlir_npu.passes.diagnostics import Diagnostic
    from mlir_npu.passes.pass_manager import PipelineFailure, run_pipeline
    from mlir_npu.passes.verify_stage import StageViolation, verify_stage

    before = module.operation.clone(False)
    done: list[str] = []
    try:
        run_pipeline(module, stage.pipeline, after_each=lambda name, _: done.append(name))
        verify_stage(module, stage.name)
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
