"""What a compilation did, as frozen records, and who is listening.

The backend records every graph it compiles; `collect` hands the records to `explain`.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass

from torch import fx

from mlir_npu.lowering.plan import Part, Rejection
from mlir_npu.lowering.quantized_macs import integer_macs
from mlir_npu.lowering.roles import CapturedGraph, describe_value
from mlir_npu.runtime.tuning import Tuning


@dataclass(frozen=True)
class PartReport:
    """One part of a stitched graph.

    engine: "npu", "llvm", "inductor" or "eager"; reason: why not the engine that was asked for;
    inputs (without parameters), parameters, outputs: "name: dtype[shape]"; ops: ATen overloads in
    order; tuning: what was measured for it, with mode="max-autotune"; integer_macs: those of `macs`
    that are of 8-bit integers.
    """

    name: str
    place: str
    engine: str
    reason: str | None
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[str, ...]
    node_count: int
    macs: int
    conv_macs: int
    tuning: Tuning | None = None
    integer_macs: int = 0


@dataclass(frozen=True)
class GraphReport:
    """One compiled graph. kind: "inference", "forward", "backward" or "branch" (of torch.cond);
    source: as stitched; sizes: "x.size()[0] = 4", the dynamic sizes that it was compiled for;
    captured: Dynamo's graph, which a forward and its backward share."""

    kind: str
    parts: tuple[PartReport, ...]
    rejections: tuple[Rejection, ...]
    source: str
    sizes: str = ""
    captured: CapturedGraph | None = None

    @property
    def regions(self) -> tuple[PartReport, ...]:
        return tuple(part for part in self.parts if part.engine == "npu")


def report_part(
    part: Part,
    engine: str,
    reason: str | None,
    static: Set[str] = frozenset(),
    tuning: Tuning | None = None,
) -> PartReport:
    """Record of one part. static: names of parameters."""
    graph = part.graph_module.graph
    placeholders = graph.find_nodes(op="placeholder")
    (output,) = graph.find_nodes(op="output")
    return PartReport(
        name=part.name,
        place=part.place,
        engine=engine,
        reason=reason,
        inputs=tuple(_describe(node) for node in placeholders if node.name not in static),
        parameters=tuple(_describe(node) for node in placeholders if node.name in static),
        outputs=tuple(_describe(node) for node in output.args[0] if isinstance(node, fx.Node)),
        ops=tuple(
            str(node.target)
            for node in graph.nodes
            if node.op == "call_function" and node.target is not operator.getitem
        ),
        node_count=part.node_count,
        macs=part.macs,
        conv_macs=part.conv_macs,
        tuning=tuning,
        integer_macs=integer_macs(part.graph_module) if engine == "npu" else 0,
    )


def list_ops(part: PartReport) -> str:
    """ "2 convolution, relu": ops in order of their first call."""
    counts = Counter(op.removeprefix("aten.").rsplit(".", 1)[0] for op in part.ops)
    return ", ".join(f"{count} {op}" if count > 1 else op for op, count in counts.items())


def describe_part(part: PartReport) -> str:
    """One line: engine, ops, work."""
    engine = "NPU" if part.engine == "npu" else f"host, {part.engine}"
    work = f"; {part.macs:,} MACs" if part.macs else ""
    if part.integer_macs:
        work += f", {part.integer_macs:,} of them int8"
    return f"{engine}: {list_ops(part)}{work}"


def record(report: GraphReport) -> None:
    """Tell every listener."""
    with _lock:
        for listener in _listeners:
            listener.append(report)


@contextlib.contextmanager
def collect() -> Iterator[list[GraphReport]]:
    """Graphs compiled inside of the block by any thread, those of autograd included."""
    reports: list[GraphReport] = []
    with _lock:
        _listeners.append(reports)
    try:
        yield reports
    finally:
        with _lock:
            _listeners[:] = [listener for listener in _listeners if listener is not reports]


_lock = threading.Lock()
_listeners: list[list[GraphReport]] = []


def _describe(node: fx.Node) -> str:
    return f"{node.name}: {describe_value(node.meta.get('val'))}"
