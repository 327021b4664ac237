"""A part of a graph -> an object file for any linker, and its IR at every level on the way.

The entry points take one pointer to an array of pointers, as in this process, but have names of
their own, every other function is local to the object, and threads are started through the three
functions of `mlir_npu_runtime.h`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir_npu.dialect.target import load_target, set_target, set_threads
from mlir_npu.errors import RegionCompileError
from mlir_npu.lowering.compile_region import COMPILING
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options
from mlir_npu.runtime.interface import Interface
from mlir_npu.runtime.native_code import KernelLinkError, undefined_symbols
from mlir_npu.runtime.signature import Signature, SignatureError

if TYPE_CHECKING:
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.lowering.retrace import Retraced
    from mlir_npu.passes.pipelines import Recipe

# what an object refers to that no library defines: the linker makes it
_OF_THE_LINKER = ("_GLOBAL_OFFSET_TABLE_",)


@dataclass(frozen=True)
class PartCode:
    """engine: "npu" or "llvm", the recipe it was compiled with; symbol: of the entry point; ir:
    text by level; needs: symbols that the object does not define."""

    engine: str
    symbol: str
    signature: Signature
    interface: Interface
    ir: Mapping[str, str]
    object: bytes
    needs: tuple[str, ...]


def compile_npu(part: Part, options: Options, parameters: Set[str], symbol: str) -> PartCode:
    """With the passes of regions. Raises RegionCompileError."""
    from mlir_npu.lowering.decompositions import REGION_DECOMPOSITIONS
    from mlir_npu.lowering.retrace import retrace
    from mlir_npu.passes.pipelines import npu_recipe

    with COMPILING:
        try:
            retraced = retrace(part.graph_module, REGION_DECOMPOSITIONS)
        except RegionImportError as error:
            raise RegionCompileError(f"import: {error}") from error
        recipe = npu_recipe(options.schedule, options.winograd)
        inputs = parameters & set(part.inputs)
        return _compile(retraced, recipe, "npu", inputs, options.target, options, symbol)


def compile_host(part: Part, options: Options, symbol: str) -> PartCode:
    """With the passes of host parts. Raises RefusedCallsError and RegionCompileError."""
    from mlir_npu.lowering.fallback.llvm import retrace_host
    from mlir_npu.passes.pipelines import HOST_RECIPE

    with COMPILING:
        try:
            retraced = retrace_host(part, exported=True)
        except RegionImportError as error:
            raise RegionCompileError(f"import: {error}") from error
        return _compile(retraced, HOST_RECIPE, "llvm", frozenset(), "host", options, symbol)


def _compile(
    retraced: Retraced,
    recipe: Recipe,
    engine: str,
    parameters: Set[str],
    target: str,
    options: Options,
    symbol: str,
) -> PartCode:
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.export.symbols import make_linkable
    from mlir_npu.lowering.importer import lower_to_linalg, torch_module
    from mlir_npu.passes.pipelines import LAST_PLANNED
    from mlir_npu.passes.run_stages import StageFailure, run_stage
    from mlir_npu.runtime.compile_jobs import plan_module
    from mlir_npu.runtime.emit import emit_object

    texts: dict[str, str] = {}

    def keep(stage: str, module: ir.Module) -> None:
        if stage == LAST_PLANNED:
            texts["npu"] = module.operation.get_asm()

    try:
        module = torch_module(retraced)
        texts["torch"] = module.operation.get_asm()
        imported = lower_to_linalg(module, retraced, parameters)
        with module.context, ir.Location.unknown():
            set_target(module.operation, load_target(target))
            set_threads(module.operation, options.num_threads)
            texts["linalg"] = module.operation.get_asm()
            signature = plan_module(module, recipe, keep)
            for stage in recipe.encode:
                run_stage(module, stage)
            make_linkable(module, {"main": symbol, "prepare": prepare_symbol(symbol)})
            texts["llvm"] = module.operation.get_asm()
            contents = emit_object(module, entries=False, movable=True)
    except (RegionImportError, StageFailure, KernelLinkError, SignatureError) as error:
        raise RegionCompileError(str(error)) from error
    needs = tuple(n for n in undefined_symbols(contents) if n not in _OF_THE_LINKER)
    return PartCode(engine, symbol, signature, imported.interface, texts, contents, needs)


def prepare_symbol(symbol: str) -> str:
    """The entry point that packs the weights of a part."""
    return f"{symbol}_prepare"
