"""Host parts through torch-mlir and LLVM: an elementwise chain becomes one loop.

Only operators that were compared with eager are taken (llvm_ops.py); a part with any other raises
HostLoweringError and runs in eager as a whole.
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering.compile_region import COMPILING, StageDump
from mlir_npu.lowering.fallback.host_decompositions import HOST_DECOMPOSITIONS
from mlir_npu.lowering.fallback.llvm_ops import explain_refusal
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.importer import ImportedRegion, import_retraced
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.retrace import retrace
from mlir_npu.options import Options
from mlir_npu.passes.pipelines import HOST_STAGES, StageFailure, run_stage
from mlir_npu.runtime.kernel import Kernel, KernelLinkError
from mlir_npu.runtime.read_signature import read_signature
from mlir_npu.runtime.region import CompiledRegion
from mlir_npu.runtime.signature import SignatureError


def compile_host_llvm(part: Part, options: Options) -> CompiledRegion:
    """Compile a part that runs on the host. Raises HostLoweringError with one sentence if it
    cannot."""
    dump = StageDump(options.dump_dir, part.name)
    with COMPILING:
        dump.graph(part.graph_module)
        try:
            return _compile(part.name, _import(part), dump)
        except RegionImportError as error:
            raise HostLoweringError(str(error)) from error
        except (StageFailure, KernelLinkError, SignatureError) as error:
            raise HostLoweringError(f"LLVM lowering of {part.name}: {error}") from error


def _import(part: Part) -> ImportedRegion:
    retraced = retrace(part.graph_module, HOST_DECOMPOSITIONS)
    for node in retraced.graph_module.graph.nodes:
        if (reason := explain_refusal(node)) is not None:
            raise HostLoweringError(reason)
    return import_retraced(retraced)


def _compile(name: str, imported: ImportedRegion, dump: StageDump) -> CompiledRegion:
    module = imported.module
    buffers, llvm = HOST_STAGES
    with module.context, ir.Location.unknown():
        dump.stage("import", module)
        run_stage(module, buffers)
        dump.stage(buffers.name, module)
        signature = read_signature(module)
        run_stage(module, llvm)
        dump.stage(llvm.name, module)
        return CompiledRegion(name, Kernel(module), signature, imported.interface, num_threads=1)
