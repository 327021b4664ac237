"""The whole order of compilation, in one place: stages of passes from linalg on tensors to LLVM.

Every stage is a textual pipeline that `npu-opt --pass-pipeline` runs as it stands here;
`run_stages` runs them in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.passes.analysis.tile_choice import MODES

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
        (
            "split-dma",
            "keep-planes",
            "elide-dma",
            *CLEANUP,
            "plan-scratchpad",
            "plan-workspace",
            "canonicalize",
        ),
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
            "move-halves-as-integers",
            "limit-code-growth",
            "align-stacks",
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
            "hoist-broadcasts",
            "linalg-fold-unit-extent-dims",
            *CLEANUP,
            "recompute-producers",
            "linalg-fuse-elementwise-ops",
            *CLEANUP,
            "hoist-broadcasts",
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
            "arith-expand",
            "booleans-to-bytes",
            *CLEANUP,
            "convert-linalg-to-vector",
            "cse",
            "relax-math",
            "pair-bfloat16",
            "arith-expand{include-bf16=true}",
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

    normalise: up to where work is in kernels, and what can be prepared apart from the rest; plan:
    up to where all memory is planned, and a kernel is a function of pointers; encode: the rest,
    which may run on every kernel alone.
    """

    normalise: tuple[Stage, ...]
    plan: tuple[Stage, ...]
    encode: tuple[Stage, ...]


LAST_NORMALISED, LAST_PLANNED = "normalise", "allocate"
HOST_RECIPE = Recipe((), HOST_STAGES[:1], HOST_STAGES[1:])


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
    first, second = (stage_names().index(name) + 1 for name in (LAST_NORMALISED, LAST_PLANNED))
    chosen = stages(schedule, winograd)
    return Recipe(chosen[:first], chosen[first:second], chosen[second:])


def stage_names() -> tuple[str, ...]:
    return tuple(stage.name for stage in STAGES)
