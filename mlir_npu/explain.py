"""`mlir_npu.explain(model, *inputs)`: what ran where, and why not on the NPU."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils import _pytree as pytree

from mlir_npu.backend import mlir_npu
from mlir_npu.lowering.report import GraphReport, collect
from mlir_npu.options import Options

WIDTH = 120


@dataclass(frozen=True)
class GraphBreak:
    """Where Dynamo left the graph. location: "file:line" of the user's program; line: its text."""

    reason: str
    location: str | None
    line: str | None


@dataclass(frozen=True)
class Explanation:
    """What one call of a model compiled to. `print` it to read it.

    graphs: in the order of compilation; breaks: between them; result: what the call returned.
    """

    graphs: tuple[GraphReport, ...]
    breaks: tuple[GraphBreak, ...]
    result: Any

    @property
    def regions(self) -> int:
        """Regions that run on the NPU."""
        return sum(len(graph.regions) for graph in self.graphs)

    @property
    def macs(self) -> int:
        return sum(part.macs for part in self._parts())

    @property
    def npu_macs(self) -> int:
        return sum(part.macs for part in self._parts() if part.engine == "npu")

    @property
    def conv_macs(self) -> int:
        return sum(part.conv_macs for part in self._parts())

    @property
    def npu_conv_macs(self) -> int:
        return sum(part.conv_macs for part in self._parts() if part.engine == "npu")

    @property
    def npu_nodes(self) -> int:
        return sum(part.node_count for part in self._parts() if part.engine == "npu")

    @property
    def host_nodes(self) -> int:
        return sum(part.node_count for part in self._parts() if part.engine != "npu")

    @property
    def source(self) -> str:
        """The stitched functions of all graphs, as Python text."""
        return "\n".join(graph.source for graph in self.graphs)

    def _parts(self):
        return (part for graph in self.graphs for part in graph.parts)

    def __str__(self) -> str:
        return render(self)


def explain(
    model: Callable,
    *inputs: Any,
    options: Mapping[str, Any] | None = None,
    train: bool = False,
    **keywords: Any,
) -> Explanation:
    """Compile `model`, call it on the inputs, and report.

    train: also run the backward pass, of the sum of all floating-point outputs, without touching any
    `.grad`; otherwise the call runs under no_grad. Raises OptionsError, StrictError, and whatever the
    model raises.
    """
    Options.parse(options)
    breaks: list[GraphBreak] = []

    def backend(graph_module, example_inputs):
        reason = getattr(graph_module, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break:
            breaks.append(_graph_break(reason))
        return mlir_npu(graph_module, example_inputs, options=options)

    compiled = torch.compile(model, backend=backend)
    # every explain compiles afresh, which must not use up the limit of the program it looks at
    limits = torch._dynamo.config.patch(recompile_limit=1 << 20, accumulated_recompile_limit=1 << 20)
    with limits, collect() as reports, contextlib.nullcontext() if train else torch.no_grad():
        result = compiled(*inputs, **keywords)
        if train:
            _backward(model, result)
    return Explanation(tuple(reports), tuple(breaks), result)


def _backward(model: Callable, result: Any) -> None:
    outputs = [
        leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    parameters = [p for p in getattr(model, "parameters", tuple)() if p.requires_grad]
    if outputs and parameters:
        total = sum(output.sum() for output in outputs)
        torch.autograd.grad(total, parameters, allow_unused=True, retain_graph=True)


def _graph_break(reason) -> GraphBreak:
    text = reason.reason.strip()
    if not reason.user_stack:
        return GraphBreak(text, None, None)
    frame = reason.user_stack[-1]
    return GraphBreak(text, f"{frame.filename}:{frame.lineno}", frame.line)


def render(explanation: Explanation) -> str:
    """The report as text."""
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
    console.print(_summary(explanation))
    for number, graph in enumerate(explanation.graphs):
        console.print()
        console.print(_parts_table(number, graph))
        if graph.rejections:
            console.print(_rejections_table(graph))
    for graph_break in explanation.breaks:
        console.print()
        console.print(f"graph break at {graph_break.location or 'an unknown line'}", markup=False)
        if graph_break.line:
            console.print(f"    {graph_break.line.strip()}", markup=False)
        console.print(graph_break.reason, markup=False)
    for number, graph in enumerate(explanation.graphs):
        console.print(f"\n# graph {number}, as Python", markup=False)
        console.print(graph.source, markup=False, soft_wrap=True)
    return console.file.getvalue()


def _summary(explanation: Explanation) -> str:
    share = 100 * explanation.npu_macs / explanation.macs if explanation.macs else 0.0
    return (
        f"{_count(len(explanation.graphs), 'graph')}, {_count(len(explanation.breaks), 'graph break')}, "
        f"{_count(explanation.regions, 'NPU region')}; {explanation.npu_nodes} nodes on the NPU, "
        f"{explanation.host_nodes} on the host; {share:.1f} % of {explanation.macs:,} multiply-accumulates "
        "on the NPU"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _parts_table(number: int, graph: GraphReport) -> Table:
    table = Table(title=f"graph {number} ({graph.kind})", title_justify="left")
    table.add_column("part")
    table.add_column("runs on")
    table.add_column("nodes", justify="right")
    table.add_column("MACs", justify="right")
    table.add_column("ops")
    table.add_column("results")
    for part in graph.parts:
        ops = Counter(op.removeprefix("aten.").split(".")[0] for op in part.ops)
        listed = ", ".join(f"{count} {op}" if count > 1 else op for op, count in ops.items())
        engine = f"{part.engine}: {part.reason}" if part.reason else part.engine
        table.add_row(
            part.name, engine, str(part.node_count), f"{part.macs:,}", listed, "\n".join(part.outputs)
        )
    return table


def _rejections_table(graph: GraphReport) -> Table:
    table = Table(title="kept on the host", title_justify="left")
    for title in ("node", "op", "why", "line"):
        table.add_column(title, overflow="fold")
    for rejection in graph.rejections:
        table.add_row(rejection.node, rejection.op, rejection.reason, rejection.location or "")
    return table
