"""The steps of compiling a module, as functions of bytes, so that any process can run them.

import:    a graph -> linalg on tensors
normalise: linalg on tensors -> calls of kernels, @main and @prepare in modules of their own
plan:      one of those -> the signature, the module that calls kernels, and its kernels
encode:    one of those modules -> an object; @main and @prepare take a pointer to all arguments

Nothing here imports torch; a request to import does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.passes.kernels.choices import SCHEDULES, set_choices
from mlir_npu.passes.pipelines import Recipe, Stage
from mlir_npu.passes.run_stages import run_stage
from mlir_npu.passes.split_functions import split_functions
from mlir_npu.passes.split_kernels import split_kernels
from mlir_npu.runtime import tuning_questions
from mlir_npu.runtime.bytecode import bytecode as bytecode
from mlir_npu.runtime.emit import emit_object
from mlir_npu.runtime.planned import KernelSource, Planned
from mlir_npu.runtime.read_signature import read_functions, read_signature
from mlir_npu.runtime.signature import Signature
from mlir_npu.runtime.tuning import Question

if TYPE_CHECKING:
    from mlir_npu.lowering.import_apart import ImportRequest

OnStage = Callable[[str, ir.Module], None]


class Session:
    """Runs steps, all in one context, which is slow to make and grows with use."""

    def __init__(self) -> None:
        self._context = make_context()

    def import_graph(self, request: ImportRequest) -> bytes:
        """Raises RegionImportError."""
        return request.run()

    def normalise(self, module: bytes, recipe: Recipe) -> tuple[bytes, ...]:
        """Raises StageFailure."""
        with self._context, ir.Location.unknown():
            parsed = ir.Module.parse(module)
            _run(parsed, recipe.normalise)
            return tuple(map(bytecode, split_functions(parsed)))

    def plan(self, module: bytes, recipe: Recipe) -> Planned:
        """Raises StageFailure and SignatureError."""
        with self._context, ir.Location.unknown():
            parsed = ir.Module.parse(module)
            _run(parsed, recipe.plan)
            functions = read_functions(parsed)
            kernels = [KernelSource(k.text, bytecode(k.module)) for k in split_kernels(parsed)]
            return Planned(functions, bytecode(parsed), tuple(kernels))

    def questions(self, about: str, module: bytes, recipe: Recipe, threads: int) -> list[Question]:
        """What could be tuned; about: "convolutions" or "kernels". Raises StageFailure."""
        with self._context, ir.Location.unknown():
            parsed = ir.Module.parse(module)
            if about == "convolutions":
                return tuning_questions.convolution_questions(parsed, recipe)
            return tuning_questions.kernel_questions(parsed, recipe, threads)

    def candidate(self, question: Question, choice: str, recipe: Recipe) -> tuple[Signature, bytes]:
        """The kernel of a question, alone, with one choice. Raises what plan and encode raise."""
        with self._context, ir.Location.unknown():
            module = ir.Module.parse(question.module)
            set_choices(module.operation, question.attribute, {question.key: choice})
            if question.attribute == SCHEDULES:
                recipe = tuning_questions.unscheduled(recipe)
            return plan_module(module, recipe), encode_module(module, recipe)

    def encode(self, module: bytes, recipe: Recipe, is_driver: bool) -> bytes:
        """Raises StageFailure and KernelLinkError."""
        with self._context, ir.Location.unknown():
            return encode_module(ir.Module.parse(module), recipe, is_driver=is_driver)

    def emit(self, text: str) -> bytes:
        """The object of a module in the LLVM dialect. Raises KernelLinkError."""
        with self._context, ir.Location.unknown():
            return emit_object(ir.Module.parse(text))


def plan_module(module: ir.Module, recipe: Recipe, on_stage: OnStage | None = None) -> Signature:
    """The first half on a module, in place; `on_stage` sees it after every stage."""
    _run(module, (*recipe.normalise, *recipe.plan), on_stage)
    return read_signature(module)


def encode_module(
    module: ir.Module, recipe: Recipe, on_stage: OnStage | None = None, *, is_driver: bool = True
) -> bytes:
    """The second half. is_driver: whether the module has functions that Python calls."""
    _run(module, recipe.encode, on_stage)
    return emit_object(module, entries=is_driver)


def _run(module: ir.Module, stages: Sequence[Stage], on_stage: OnStage | None = None) -> None:
    for stage in stages:
        run_stage(module, stage)
        if on_stage is not None:
            on_stage(stage.name, module)
