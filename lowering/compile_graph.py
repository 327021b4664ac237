"""One ATen graph from AOTAutograd -> one function: partition, compile the parts, stitch, report.

With dump_dir, <dump_dir>/<kind>_<number>.py is the stitched function of a graph, and the folder of
the same name has the IR of its parts.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import types
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import fx
from torch._dynamo.convert_frame import compile_lock
from torch._subclasses.fake_tensor import unset_fake_temporarily

from mlir_npu.errors import RegionCompileError, StrictError
from mlir_npu.logs import warn_once
from mlir_npu.lowering.branches import with_compiled_branches
from mlir_npu.lowering.code_generator import generate_region
from mlir_npu.lowering.compile_region import compile_region, import_region
from mlir_npu.lowering.fallback import HostPart, compile_host
from mlir_npu.lowering.host_work import refuse_fallbacks, warn_of_host_work
from mlir_npu.lowering.internal_error import describe_internal_error
from mlir_npu.lowering.part_calls import watched
from mlir_npu.lowering.partition import partition
from mlir_npu.lowering.plan import Part, PartitionPlan
from mlir_npu.lowering.region_modules import RegionModule, wanted_modules
from mlir_npu.lowering.report import GraphReport, PartReport, describe_part, record, report_part
from mlir_npu.lowering.roles import CapturedGraph, Role
from mlir_npu.lowering.stitch import stitch, stitched_source
from mlir_npu.lowering.support.rules import HOLDS_ZEROS
from mlir_npu.options import Options

logger = logging.getLogger("mlir_npu.graph")


@dataclass(frozen=True)
class CompiledGraph:
    """call: the stitched function, boxed; parts: what it calls, by name."""

    plan: PartitionPlan
    parts: Mapping[str, Callable]
    call: Callable
    report: GraphReport

    def with_parts(self, parts: Mapping[str, Callable]) -> Callable:
        """The same function with other callables for some of its parts."""
        return types.FunctionType(self.call.__code__, {**self.call.__globals__, **parts})


def compile_graph(
    graph_module: fx.GraphModule,
    *,
    kind: str,
    options: Options,
    roles: Mapping[str, Role],
    sizes: str = "",
    captured: CapturedGraph | None = None,
) -> CompiledGraph:
    """Compile all parts of the graph.

    kind: "inference", "forward", "backward" or "branch"; roles: what each placeholder is; sizes:
    what it was specialised for, for people; captured: Dynamo's graph, for the report. Raises
    StrictError with options.strict if there is a fallback: see `host_work`, a region that does not
    compile, or a host part that the engine asked for does not take.
    """
    # Tracing patches nn.Module for all threads, and backwards are compiled outside of Dynamo, so
    # they take its lock too. AOTAutograd's fake mode would keep constants from being read.
    with compile_lock, unset_fake_temporarily(), _making_tensors_on_the_host():
        if options.fallback != "inductor":  # which compiles branches itself

            def compile_branch(branch: fx.GraphModule, inner: Mapping[str, Role]) -> Callable:
                common = {"options": options, "sizes": sizes, "captured": captured}
                return compile_graph(branch, kind="branch", roles=inner, **common).call

            graph_module = with_compiled_branches(graph_module, roles, compile_branch)
        plan = partition(graph_module, options)
        if options.strict:
            refuse_fallbacks(plan, options)
        warn_of_host_work(plan, options, kind)
        folder = _new_folder(kind, options.dump_dir)
        if folder is not None:
            options = dataclasses.replace(options, dump_dir=str(folder))
        static = frozenset(name for name, role in roles.items() if role.static)
        zeros = frozenset(name for name, role in roles.items() if role.zeros)
        calls: dict[str, Callable] = {}
        reports: list[PartReport] = []
        for part in plan.parts:
            _mark_zeros(part, zeros)
            compiled = _compile_part(part, options, static)
            calls[part.name] = compiled.call
            tuning = compiled.call.tuning if compiled.engine == "npu" else None
            reports.append(report_part(part, compiled.engine, compiled.reason, static, tuning))
        comments = {name: role.text for name, role in roles.items()}
        comments |= {report.name: describe_part(report) for report in reports}
        source = stitched_source(plan, kind, comments)
        if folder is not None:
            folder.with_suffix(".py").write_text(source)
        report = GraphReport(kind, tuple(reports), plan.rejections, source, sizes, captured)
        record(report)
        _log(kind, reports)
        logger.debug("%s graph as Python:\n%s", kind, source)
        return CompiledGraph(plan, calls, stitch(plan, watched(calls, report), source), report)


def _making_tensors_on_the_host() -> AbstractContextManager:
    """The user may have set another default device, which is for the user's tensors."""
    if torch.get_default_device().type == "cpu":
        return nullcontext()
    return torch.device("cpu")


def _mark_zeros(part: Part, zeros: frozenset[str]) -> None:
    for node in part.graph_module.graph.find_nodes(op="placeholder"):
        if node.name in zeros:
            node.meta[HOLDS_ZEROS] = True


def _compile_part(part: Part, options: Options, static: frozenset[str]) -> HostPart:
    if part.place == "host":
        return compile_host(part, options)
    try:
        if (modules := wanted_modules()) is not None:
            imported = import_region(part, options, static & set(part.inputs))
            modules.append(RegionModule(part.name, imported.module))
            return compile_host(part, dataclasses.replace(options, fallback="eager"))
        compile_ = generate_region if options.code_generator else compile_region
        return HostPart(compile_(part, options, static & set(part.inputs)), "npu")
    except RegionCompileError as error:
        return _after_failure(part, options, error)
    except Exception as error:  # a fault of ours must not cost users their program
        logger.debug("%s: internal error", part.name, exc_info=True)
        return _after_failure(part, options, RegionCompileError(describe_internal_error(error)))


def _after_failure(part: Part, options: Options, error: RegionCompileError) -> HostPart:
    if options.strict:
        raise StrictError(f"{part.name} does not compile: {error}") from error
    host = compile_host(part, options)
    warn_once(
        logger,
        error.cause,
        f"mlir_npu region {part.name} runs on the host ({host.engine}): {error}",
    )
    return HostPart(host.call, host.engine, error.cause)


def _new_folder(kind: str, dump_dir: str | None) -> Path | None:
    """A folder that no other graph, of whatever process, writes to."""
    if dump_dir is None:
        return None
    for number in itertools.count():
        folder = Path(dump_dir) / f"{kind}_{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder


def _log(kind: str, reports: list[PartReport]) -> None:
    for part in reports:
        logger.info(
            "%s: %s on %s: %d nodes, %d MACs",
            kind,
            part.name,
            part.engine,
            part.node_count,
            part.macs,
        )
