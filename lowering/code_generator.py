"""Regions for a code generator of the user's: what it is given, and what becomes of its code.

A code generator is a function of a `Region` that returns the region's code, or raises; then the
region runs on the host, with a warning (an error with strict=True).

    def generate(region):
        program = my_compiler.compile(region.ir("allocate"))
        return GeneratedCode(run=program.run, prepare=program.upload)

    torch.compile(model, backend="mlir_npu", options={"code_generator": generate})
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Literal

import torch
from torch import fx

from mlir_npu.errors import RegionCompileError
from mlir_npu.lowering.compile_region import COMPILING
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.retrace import Retraced, retrace
from mlir_npu.options import Options
from mlir_npu.runtime.generated_region import GeneratedCode, GeneratedRegion
from mlir_npu.runtime.tensor_spec import TensorSpec

DIALECT_LEVELS = ("torch", "linalg")


@dataclass(frozen=True)
class RegionArgument:
    """An argument of @main. role: "parameter" changes seldom, as weights and constants do."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    role: Literal["input", "parameter"]


@dataclass(frozen=True)
class RegionResult:
    """A result of @main."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Region:
    """A part of a network to be made code of.

    It is one function, @main, on row-major tensors of static shape: an image in channels_last has
    the shape (N, H, W, C) here. From the stage "buffers" on, @main has its results as further
    arguments, and memory to work in; the attribute npu.role says what each of them is.

    name: as in explain(); arguments, results: of @main; graph_module: ATen calls, of which the
    tensors are those of @main; macs: multiply-accumulates of a call.
    """

    def __init__(self, part: Part, retraced: Retraced, options: Options, parameters: Set[str]):
        self.name = part.name
        self.macs = part.macs
        self.graph_module: fx.GraphModule = retraced.graph_module
        names = (*retraced.input_names, *(f"constant_{i}" for i in range(len(retraced.constants))))
        specs = (*retraced.inputs, *map(TensorSpec.of, retraced.constants))
        held = {*retraced.positions(parameters), *range(len(retraced.inputs), len(specs))}
        self.arguments = tuple(
            RegionArgument(
                name, spec.physical_shape, spec.dtype, "parameter" if i in held else "input"
            )
            for i, (name, spec) in enumerate(zip(names, specs, strict=True))
        )
        self.results = tuple(RegionResult(s.physical_shape, s.dtype) for s in retraced.results)
        self._retraced, self._options, self._parameters = retraced, options, parameters

    def ir(self, level: str) -> str:
        """The region as text: in the dialect "torch" or "linalg", or after a stage such as
        "schedule", "allocate" or "llvm".

        Raises ValueError for an unknown level, and RegionCompileError if the way there fails.
        """
        from mlir_npu.dialect.bindings import ir
        from mlir_npu.dialect.target import load_target, set_target, set_threads
        from mlir_npu.lowering.importer import lower_to_linalg, torch_module
        from mlir_npu.passes.pipelines import stage_names
        from mlir_npu.passes.run_stages import StageFailure, run_stages

        levels = (*DIALECT_LEVELS, *stage_names())
        if level not in levels:
            raise ValueError(f"no level is called {level!r}; there are {', '.join(levels)}")
        options = self._options
        with COMPILING:
            try:
                module = torch_module(self._retraced)
                if level == "torch":
                    return module.operation.get_asm()
                lower_to_linalg(module, self._retraced, self._parameters)
                with module.context, ir.Location.unknown():
                    set_target(module.operation, load_target(options.target))
                    set_threads(module.operation, options.num_threads)
                    if level != "linalg":
                        modes = {"schedule": options.schedule, "winograd": options.winograd}
                        run_stages(module, last=level, **modes)
                    return module.operation.get_asm()
            except (RegionImportError, StageFailure) as error:
                raise RegionCompileError(f"{self.name}: {error}") from error


def generate_region(part: Part, options: Options, parameters: Set[str]) -> GeneratedRegion:
    """The part, run by what the user's code generator makes of it. Raises RegionCompileError."""
    from mlir_npu.lowering.decompositions import REGION_DECOMPOSITIONS

    generator = options.code_generator
    with COMPILING:
        try:
            retraced = retrace(part.graph_module, REGION_DECOMPOSITIONS)
        except RegionImportError as error:
            raise RegionCompileError(f"import: {error}") from error
        region = Region(part, retraced, options, parameters)
        try:
            code = generator(region)
        except RegionCompileError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise RegionCompileError(f"{_name(generator)} does not take it: {what}") from error
    if not isinstance(code, GeneratedCode):
        if not callable(code):
            raise RegionCompileError(
                f"{_name(generator)} returned {code!r}, neither a function nor GeneratedCode"
            )
        code = GeneratedCode(code)
    return GeneratedRegion(part.name, code, retraced.interface(parameters))


def _name(generator: Callable) -> str:
    return f"code generator {getattr(generator, '__qualname__', type(generator).__qualname__)}"
