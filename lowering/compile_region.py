"""One region of a graph -> machine code: import, stages, JIT.

With `dump_dir`, <dump_dir>/<region>/ holds the ATen graph (region.py) and the IR after every stage
(00_import.mlir, 01_normalise.mlir, ...), each readable by npu-opt. On failure the IR before the
failing stage is written in any case, and the error carries the npu-opt command that repeats it.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Set
from pathlib import Path

from torch import fx

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.errors import RegionCompileError
from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.importer import ImportedRegion, import_graph
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options
from mlir_npu.passes.pipelines import StageFailure, run_stages
from mlir_npu.runtime.kernel import Kernel, KernelLinkError
from mlir_npu.runtime.read_signature import read_signature
from mlir_npu.runtime.region import CompiledRegion
from mlir_npu.runtime.signature import Signature, SignatureError

SIGNATURE_STAGE = "allocate"  # after it, all arguments are memrefs and all memory is planned

# re-tracing sets global state of torch.fx, and the GIL is held while MLIR compiles anyway
COMPILING = threading.RLock()


class StageDump:
    """Writes the IR of one region, stage by stage, if the user asked for it."""

    def __init__(self, dump_dir: str | Path | None, region: str) -> None:
        self._folder = Path(dump_dir) / region if dump_dir else None
        self._region = region
        self._count = 0

    def graph(self, graph_module: fx.GraphModule) -> None:
        if self._folder is not None:
            self._write("region.py", graph_module.print_readable(print_output=False))

    def stage(self, name: str, module: ir.Module) -> None:
        if self._folder is not None:
            self._write(f"{self._count:02d}_{name}.mlir", module.operation.get_asm())
        self._count += 1

    def failure(self, name: str, text: str) -> Path:
        """Write what a failure needs to be repeated, to a temporary folder if there is no other."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="mlir-npu-")) / self._region
        return self._write(name, text)

    def _write(self, name: str, text: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name
        path.write_text(text if text.endswith("\n") else text + "\n")
        return path


def compile_region(part: Part, options: Options, parameters: Set[str]) -> CompiledRegion:
    """Compile a part that partitioning placed on the NPU. `parameters`: names of its inputs that
    are weights.

    Raises RegionCompileError with the cause and how to reproduce it.
    """
    dump = StageDump(options.dump_dir, part.name)
    with COMPILING:
        return _compile(part, options, parameters, dump)


def import_region(
    part: Part, options: Options, parameters: Set[str], dump: StageDump | None = None
) -> ImportedRegion:
    """The part in linalg on tensors, with its target and threads. Raises RegionCompileError."""
    dump = dump or StageDump(options.dump_dir, part.name)
    dump.graph(part.graph_module)
    try:
        imported = import_graph(
            part.graph_module, parameters=parameters, decompositions=NPU_DECOMPOSITIONS
        )
    except RegionImportError as error:
        path = dump.failure("region.py", part.graph_module.print_readable(print_output=False))
        raise RegionCompileError(f"import: {error}", f"the ATen graph is in {path}") from error
    module = imported.module
    with module.context, ir.Location.unknown():
        set_target(module.operation, load_target(options.target))
        if options.num_threads:
            module.operation.attributes["npu.num_threads"] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(64), options.num_threads
            )
    dump.stage("import", module)
    return imported


def _compile(part: Part, options: Options, parameters: Set[str], dump: StageDump) -> CompiledRegion:
    imported = import_region(part, options, parameters, dump)
    module = imported.module
    signatures: list[Signature] = []

    def on_stage(name: str, module: ir.Module) -> None:
        dump.stage(name, module)
        if name == SIGNATURE_STAGE:
            signatures.append(read_signature(module))

    with module.context, ir.Location.unknown():
        try:
            run_stages(module, on_stage, schedule=options.schedule, winograd=options.winograd)
            kernel = Kernel(module)
            return CompiledRegion(
                part.name,
                kernel,
                signatures[0],
                imported.interface,
                num_threads=options.num_threads or 0,
            )
        except StageFailure as failure:
            path = dump.failure(f"before_{failure.stage}.mlir", failure.ir_before)
            raise RegionCompileError(str(failure), failure.reproduction(str(path))) from failure
        except (KernelLinkError, SignatureError) as error:
            path = dump.failure("module.mlir", module.operation.get_asm())
            raise RegionCompileError(str(error), f"the module is in {path}") from error
