"""What a compilation did, as frozen records, and who is listening.

The backend records every graph it compiles; `collect` hands the records to `explain`.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import fx

from mlir_npu.lowering.plan import Part, Rejection


@dataclass(frozen=True)
class PartReport:
    """One part of a stitched graph.

    engine: "npu", "llvm", "inductor" or "eager"; reason: why not the engine that was asked for;
    inputs, outputs: "name: dtype[shape]"; ops: ATen overloads in order.
    """

    name: str
    place: str
    engine: str
    reason: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[str, ...]
    node_count: int
    macs: int
    conv_macs: int


@dataclass(frozen=True)
class GraphReport:
    """One compiled graph. kind: "inference", "forward" or "backward"; source: the stitched function."""

    kind: str
    parts: tuple[PartReport, ...]
    rejections: tuple[Rejection, ...]
    source: str

    @property
    def regions(self) -> tuple[PartReport, ...]:
        return tuple(part for part in self.parts if part.engine == "npu")


def report_part(part: Part, engine: str, reason: str | None) -> PartReport:
    """Record of one part."""
    graph = part.graph_module.graph
    (output,) = graph.find_nodes(op="output")
    return PartReport(
        name=part.name,
        place=part.place,
        engine=engine,
        reason=reason,
        inputs=tuple(map(_describe, graph.find_nodes(op="placeholder"))),
        outputs=tuple(_describe(node) for node in output.args[0] if isinstance(node, fx.Node)),
        ops=tuple(
            str(node.target)
            for node in graph.nodes
            if node.op == "call_function" and node.target is not operator.getitem
        ),
        node_count=part.node_count,
        macs=part.macs,
        conv_macs=part.conv_macs,
    )


def record(report: GraphReport) -> None:
    """Tell every listener."""
    with _lock:
        for listener in _listeners:
            listener.append(report)


@contextlib.contextmanager
def collect() -> Iterator[list[GraphReport]]:
    """Graphs compiled by any thread inside of the block, the backward of autograd's threads included."""
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
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return f"{node.name}: {type(value).__name__}"
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{node.name}: {dtype}[{', '.join(map(str, value.shape))}]"
