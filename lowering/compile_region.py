"""One region of a graph -> machine code: import, stages, objects; or what the cache kept of that.

Large regions are compiled in other processes, kernel by kernel, small ones in this one.

With `dump_dir` the region is compiled as a whole, in this process, and not taken from the cache. On
failure the IR before the failing stage is written in any case, and the error carries the npu-opt
command that repeats it.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import shlex
import threading
from collections.abc import Set
from typing import TYPE_CHECKING

from mlir_npu.dialect.target import load_target, set_target, set_threads
from mlir_npu.errors import RegionCompileError
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.region_code import (
    CompiledModule,
    JobFailure,
    RegionCode,
    Run,
    cached_region,
    compile_module,
)
from mlir_npu.lowering.region_key import region_key
from mlir_npu.lowering.stage_dump import StageDump
from mlir_npu.options import Options
from mlir_npu.runtime import entries, fingerprint
from mlir_npu.runtime.compile_pool import POOL, WorkerCrash, run_apart, run_here
from mlir_npu.runtime.kernel import KernelLinkError
from mlir_npu.runtime.region import CompiledRegion
from mlir_npu.runtime.signature import SignatureError
from mlir_npu.runtime.text_kernel import with_texts
from mlir_npu.runtime.tuning import Tuning

if TYPE_CHECKING:  # what is in the cache is found without loading MLIR
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.lowering.importer import ImportedRegion
    from mlir_npu.passes.pipelines import Recipe

LARGE = 24  # ATen calls from which other processes are worth their start

# re-tracing sets global state of torch.fx, and the GIL is held while MLIR compiles anyway
COMPILING = threading.RLock()


def compile_region(part: Part, options: Options, parameters: Set[str]) -> CompiledRegion:
    """Compile a part that partitioning placed on the NPU. `parameters`: names of its inputs that
    are weights.

    Raises RegionCompileError with the cause and how to reproduce it.
    """
    with COMPILING:
        key = None
        if options.cache and options.dump_dir is None:
            key = region_key(part.graph_module, part.place, parameters, options)
        code = cached_region(key, lambda: _compile(part, options, parameters))
        try:
            return code.load(part.name, options.num_threads or 0)
        except (KernelLinkError, SignatureError) as error:
            raise RegionCompileError(str(error)) from error


def import_region(
    part: Part, options: Options, parameters: Set[str], dump: StageDump | None = None
) -> ImportedRegion:
    """The part in linalg on tensors, with its target and threads. Raises RegionCompileError."""
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.lowering.decompositions import REGION_DECOMPOSITIONS
    from mlir_npu.lowering.importer import import_graph

    dump = dump or StageDump(options.dump_dir, part.name)
    dump.graph(part.graph_module)
    try:
        imported = import_graph(
            part.graph_module, parameters=parameters, decompositions=REGION_DECOMPOSITIONS
        )
    except RegionImportError as error:
        raise _import_failure(part, error, dump) from error
    module = imported.module
    with module.context, ir.Location.unknown():
        set_target(module.operation, load_target(options.target))
        set_threads(module.operation, options.num_threads)
    dump.stage("import", module)
    return imported


def _compile(part: Part, options: Options, parameters: Set[str]) -> RegionCode:
    large = part.node_count >= LARGE and options.dump_dir is None
    if large:
        POOL.start()  # it comes up while the graph is traced
    from mlir_npu.passes.pipelines import npu_recipe

    recipe = npu_recipe(options.schedule, options.winograd)
    if large and not options.autotune:
        return _compile_apart(part, options, parameters, recipe)
    dump = StageDump(options.dump_dir, part.name)
    imported = import_region(part, options, parameters, dump)
    tuning = _tune(imported.module, recipe, options) if options.autotune else None
    run = run_apart if large else run_here
    code = build_code(imported, recipe, run, dump, use_cache=options.cache)
    return dataclasses.replace(code, tuning=tuning)


def _compile_apart(
    part: Part, options: Options, parameters: Set[str], recipe: Recipe
) -> RegionCode:
    """Without MLIR in this process."""
    from mlir_npu.lowering.decompositions import REGION_DECOMPOSITIONS
    from mlir_npu.lowering.importer import import_request
    from mlir_npu.lowering.retrace import retrace

    dump = StageDump(None, part.name)
    try:
        retraced = retrace(part.graph_module, REGION_DECOMPOSITIONS)
        target = load_target(options.target)
        request = import_request(retraced, parameters, target, options.num_threads)
        (module,) = run_apart([("import_graph", (request,))])
        if isinstance(module, Exception):
            raise module
        run = functools.partial(with_texts, run_apart, (entries.SOURCE, fingerprint.source()))
        compiled = compile_module(module, recipe, run, use_cache=options.cache)
    except RegionImportError as error:
        raise _import_failure(part, error, dump) from error
    except WorkerCrash as crash:
        path = dump.failure("region.py", part.graph_module.print_readable(print_output=False))
        dump.failure("crash.txt", crash.last_words)
        what = f"import: {crash} (its last words are in crash.txt)"
        raise RegionCompileError(what, f"the ATen graph is in {path}") from crash
    except JobFailure as failure:
        raise _explain(failure, recipe, dump) from failure.cause
    _return_free_memory()
    return RegionCode(compiled.objects, compiled.signature, retraced.interface(parameters))


def _import_failure(part: Part, error: RegionImportError, dump: StageDump) -> RegionCompileError:
    path = dump.failure("region.py", part.graph_module.print_readable(print_output=False))
    return RegionCompileError(f"import: {error}", f"the ATen graph is in {path}")


def _tune(module: ir.Module, recipe: Recipe, options: Options) -> Tuning:
    from mlir_npu.lowering.autotune import autotune

    return autotune(module, recipe, options)


def _return_free_memory() -> None:
    """Give what compiling took back to the system, before weights are packed."""
    with contextlib.suppress(AttributeError):  # another libc than glibc
        ctypes.CDLL(None).malloc_trim(0)


def build_code(
    imported: ImportedRegion, recipe: Recipe, run: Run, dump: StageDump, *, use_cache: bool
) -> RegionCode:
    """Compile what was imported; with a dump as a whole and here. Raises RegionCompileError."""
    from mlir_npu.runtime.compile_jobs import bytecode

    module = imported.module
    try:
        if dump.is_wanted:
            compiled = _compile_whole(module, recipe, dump)
        else:
            compiled = compile_module(bytecode(module), recipe, run, use_cache=use_cache)
    except JobFailure as failure:
        raise _explain(failure, recipe, dump) from failure.cause
    return RegionCode(compiled.objects, compiled.signature, imported.interface)


def _compile_whole(module: ir.Module, recipe: Recipe, dump: StageDump) -> CompiledModule:
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.runtime import compile_jobs

    step = "plan"
    try:
        with module.context, ir.Location.unknown():
            signature = compile_jobs.plan_module(module, recipe, dump.stage)
            step = "encode"
            contents = compile_jobs.encode_module(module, recipe, dump.stage)
    except Exception as error:
        raise JobFailure(error, step, compile_jobs.bytecode(module)) from error
    return CompiledModule((contents,), signature)


def _explain(failure: JobFailure, recipe: Recipe, dump: StageDump) -> Exception:
    """The error for the user, with files that show it again."""
    from mlir_npu.passes.pipelines import pipeline_of
    from mlir_npu.passes.run_stages import StageFailure

    cause = failure.cause
    if isinstance(cause, StageFailure):
        path = dump.failure(f"before_{cause.stage}.mlir", cause.ir_before)
        return RegionCompileError(str(cause), cause.reproduction(str(path)))
    if isinstance(cause, WorkerCrash):
        path = dump.failure("crash.mlir", _text_of(failure.module))
        dump.failure("crash.txt", cause.last_words)
        pipeline = pipeline_of(getattr(recipe, failure.step))
        command = f"npu-opt {shlex.quote(str(path))} --pass-pipeline={shlex.quote(pipeline)}"
        return RegionCompileError(f"{cause} (its last words are in crash.txt)", command)
    if isinstance(cause, (KernelLinkError, SignatureError)):
        path = dump.failure("module.mlir", _text_of(failure.module))
        return RegionCompileError(str(cause), f"the module is in {path}")
    return cause


def _text_of(module: bytes) -> str:
    from mlir_npu.dialect.bindings import ir, make_context

    with make_context():
        return ir.Module.parse(module).operation.get_asm()
