"""One ATen graph from AOTAutograd -> one callable: partition, compile the parts, stitch, report."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Set
from pathlib import Path

from torch import fx

from mlir_npu.errors import RegionCompileError, StrictError
from mlir_npu.logs import warn_once
from mlir_npu.lowering.compile_region import compile_region
from mlir_npu.lowering.fallback import HostPart, compile_host
from mlir_npu.lowering.partition import matches_op, partition
from mlir_npu.lowering.plan import Part, PartitionPlan
from mlir_npu.lowering.report import GraphReport, PartReport, record, report_part
from mlir_npu.lowering.stitch import stitch, stitched_source
from mlir_npu.options import Options

logger = logging.getLogger("mlir_npu.graph")

# MLIR contexts and Inductor's state are used by one thread at a time.
_compile_lock = threading.RLock()


def compile_graph(
    graph_module: fx.GraphModule, *, kind: str, options: Options, parameters: Set[str]
) -> Callable:
    """Boxed callable of the graph.

    kind: "inference", "forward" or "backward"; parameters: placeholders that change seldom (weights).
    Raises StrictError with options.strict if anything but options.host_ops would run on the host.
    """
    with _compile_lock:
        plan = partition(graph_module, options)
        if options.strict:
            _refuse_host(plan, options)
        calls: dict[str, Callable] = {}
        reports: list[PartReport] = []
        for part in plan.parts:
            call, engine, reason = _compile_part(part, options, parameters)
            calls[part.name] = call
            reports.append(report_part(part, engine, reason))
        source = stitched_source(plan, name=kind)
        _dump_source(source, kind, options)
        record(GraphReport(kind, tuple(reports), plan.rejections, source))
        _log(kind, reports)
        return stitch(plan, calls, source)


def _compile_part(
    part: Part, options: Options, parameters: Set[str]
) -> tuple[Callable, str, str | None]:
    if part.place == "host":
        host = compile_host(part, options)
        return host.call, host.engine, host.reason
    try:
        return compile_region(part, options, parameters & set(part.inputs)), "npu", None
    except RegionCompileError as error:
        if options.strict:
            raise StrictError(f"{part.name} does not compile: {error}") from error
        host: HostPart = compile_host(part, options)
        warn_once(logger, error.cause, f"{part.name} runs on the host ({host.engine}): {error}")
        return host.call, host.engine, error.cause


def _refuse_host(plan: PartitionPlan, options: Options) -> None:
    asked_for = {
        node.name
        for node in plan.graph_module.graph.nodes
        if any(matches_op(name, node) for name in options.host_ops)
    }
    causes = [rejection for rejection in plan.rejections if rejection.node not in asked_for]
    if not causes:
        return
    lines = [f"  {r.op} ({r.location or 'no source line'}): {r.reason}" for r in causes[:20]]
    more = f"\n  and {len(causes) - 20} more" if len(causes) > 20 else ""
    raise StrictError(
        f"strict=True, and {len(causes)} ops would run on the host; "
        "list them in host_ops to allow it:\n" + "\n".join(lines) + more
    )


def _dump_source(source: str, kind: str, options: Options) -> None:
    if options.dump_dir is None:
        return
    directory = Path(options.dump_dir)
    directory.mkdir(parents=True, exist_ok=True)
    taken = len(list(directory.glob(f"{kind}_*.py")))
    (directory / f"{kind}_{taken}.py").write_text(source)


def _log(kind: str, reports: list[PartReport]) -> None:
    for part in reports:
        logger.info(
            "%s: %s on %s: %d nodes, %d MACs", kind, part.name, part.engine, part.node_count, part.macs
        )
