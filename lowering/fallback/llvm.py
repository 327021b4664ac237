"""Host parts through torch-mlir and LLVM: an elementwise chain becomes one loop.

Only operators that were compared with eager are taken (llvm_ops.py). A part with others raises
RefusedCallsError, which names them; split_part.py then leaves those to eager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import fx

from mlir_npu.dialect.target import load_target, set_target, set_threads
from mlir_npu.errors import HostLoweringError, RegionCompileError
from mlir_npu.lowering.compile_region import COMPILING, build_code
from mlir_npu.lowering.fallback.llvm_ops import explain_refusal
from mlir_npu.lowering.half_statistics import mistyped_statistics
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.region_code import RegionCode, cached_region
from mlir_npu.lowering.region_key import region_key
from mlir_npu.lowering.stage_dump import StageDump
from mlir_npu.options import Options
from mlir_npu.runtime.compile_pool import run_here
from mlir_npu.runtime.kernel import KernelLinkError
from mlir_npu.runtime.region import CompiledRegion
from mlir_npu.runtime.signature import SignatureError

if TYPE_CHECKING:
    from mlir_npu.lowering.retrace import Retraced


# Tracing, which knows shapes only, cannot go past such calls.
_DEPENDS_ON_CONTENTS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class RefusedCallsError(HostLoweringError):
    """calls: nodes of the part that LLVM does not take, with the reason of each."""

    def __init__(self, calls: dict[str, str]) -> None:
        super().__init__(next(iter(calls.values())))
        self.calls = calls


def compile_host_llvm(part: Part, options: Options) -> CompiledRegion:
    """Compile a part that runs on the host. Raises HostLoweringError with one sentence if it
    cannot."""
    with COMPILING:
        key = None
        if options.cache and options.dump_dir is None:
            key = region_key(part.graph_module, part.place, frozenset(), options)
        try:
            code = cached_region(key, lambda: _compile(part, options))
            return code.load(part.name, options.num_threads or 0)
        except RegionImportError as error:
            raise HostLoweringError(str(error)) from error
        except (RegionCompileError, KernelLinkError, SignatureError) as error:
            raise HostLoweringError(f"LLVM lowering of {part.name}: {error}") from error


def _compile(part: Part, options: Options) -> RegionCode:
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.lowering.importer import import_retraced
    from mlir_npu.passes.pipelines import HOST_RECIPE

    dump = StageDump(options.dump_dir, part.name)
    dump.graph(part.graph_module)
    imported = import_retraced(retrace_host(part))
    with imported.module.context, ir.Location.unknown():
        set_target(imported.module.operation, load_target("host"))
        set_threads(imported.module.operation, options.num_threads)
    dump.stage("import", imported.module)
    return build_code(imported, HOST_RECIPE, run_here, dump, use_cache=options.cache)


def retrace_host(part: Part, *, exported: bool = False) -> Retraced:
    """The part in the calls that host lowering takes; exported: also in those that eager does
    better. Raises RefusedCallsError and RegionImportError."""
    from mlir_npu.lowering.fallback.host_decompositions import HOST_DECOMPOSITIONS
    from mlir_npu.lowering.retrace import retrace

    kept = {torch.ops.aten.index_select.default} if exported else set()
    nodes = [node for node in part.graph_module.graph.nodes if node.target not in kept]
    if refused := _reasons((node.name, _respelling(node)) for node in nodes):
        raise RefusedCallsError(refused)
    table = {call: how for call, how in HOST_DECOMPOSITIONS.items() if call not in kept}
    retraced = retrace(part.graph_module, table)
    reasons = (
        (_original(node), explain_refusal(node, exported=exported))
        for node in retraced.graph_module.graph.nodes
    )
    if refused := _reasons(reasons):
        raise RefusedCallsError(refused)
    return retraced


def _reasons(found: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The first reason of every call that has one."""
    reasons: dict[str, str] = {}
    for name, reason in found:
        if reason is not None:
            reasons.setdefault(name, reason)
    return reasons


def _respelling(node: fx.Node) -> str | None:
    from mlir_npu.lowering.fallback.host_decompositions import explain_respelling

    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return f"{node.target} calls other graphs"
    if _DEPENDS_ON_CONTENTS & set(getattr(node.target, "tags", ())):
        return f"{node.target}: what it returns depends on the contents of its arguments"
    reason = mistyped_statistics(node) or explain_respelling(node)
    return reason and f"{node.target}: {reason}"


def _original(node: fx.Node) -> str:
    """The node of the part that a re-traced node was made for."""
    return node.meta["from_node"][-1].name if "from_node" in node.meta else node.name
