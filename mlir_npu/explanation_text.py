"""An explanation as text: summary, a table of parts for each graph, rejections, breaks, source."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from mlir_npu.explanation import Explanation
from mlir_npu.graph_breaks import GraphBreak
from mlir_npu.lowering.plan import Rejection
from mlir_npu.lowering.report import GraphReport, PartReport, list_ops
from mlir_npu.words import count

WIDTH = 120


def render(explanation: Explanation) -> str:
    """The report, at most 120 columns wide but for long lines of source."""
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
    console.print(_summary(explanation), markup=False)
    for number, graph in enumerate(explanation.graphs):
        sizes = f", as compiled for {graph.sizes}" if graph.sizes else ""
        console.print(f"\ngraph {number}: {graph.kind}{sizes}", markup=False)
        console.print(_parts_table(graph, explanation.macs))
        for part in graph.parts:
            if part.tuning is not None:
                console.print(f"{part.name}: {part.tuning}", markup=False)
        if graph.rejections:
            console.print("Not on the NPU:")
            console.print(_rejections_table(graph))
    for graph_break in explanation.breaks:
        console.print(_break_text(graph_break), markup=False)
    for number, graph in enumerate(explanation.graphs):
        console.print(
            f"\n# graph {number}, as Python\n{graph.source}", markup=False, soft_wrap=True
        )
    lines = console.file.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _summary(explanation: Explanation) -> str:
    graphs = count(len(explanation.graphs), "graph")
    breaks = count(len(explanation.breaks), "graph break")
    regions = count(explanation.regions, "NPU region")
    nodes = count(explanation.npu_nodes, "node")
    share = _share(explanation.npu_macs, explanation.macs)
    integers = f", {explanation.integer_macs:,} of them int8" if explanation.integer_macs else ""
    return (
        f"{graphs}, {breaks}, {regions}\n"
        f"{nodes} on the NPU, {explanation.host_nodes} on the host\n"
        f"{explanation.macs:,} multiply-accumulates, {share} on the NPU{integers}"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _parts_table(graph: GraphReport, all_macs: int) -> Table:
    table = Table(show_lines=len(graph.parts) > 1)
    table.add_column("part", no_wrap=True)
    table.add_column("runs on", ratio=2)
    table.add_column("nodes", justify="right")
    table.add_column("MACs", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("ops", ratio=3)
    table.add_column("takes -> makes", ratio=3)
    for part in graph.parts:
        table.add_row(
            part.name,
            _escape(_engine(part)),
            str(part.node_count),
            f"{part.macs:,}",
            _share(part.macs, all_macs) if part.macs else "",
            _escape(list_ops(part)),
            _escape(_values(part)),
        )
    return table


def _engine(part: PartReport) -> str:
    engine = "NPU" if part.engine == "npu" else f"host: {part.engine}"
    return f"{engine}, because {part.reason}" if part.reason else engine


def _values(part: PartReport) -> str:
    taken = list(part.inputs)
    if part.parameters:
        taken.append(f"and {count(len(part.parameters), 'parameter')}")
    return "\n".join([*taken, *(f"-> {output}" for output in part.outputs)])


def _rejections_table(graph: GraphReport) -> Table:
    """Calls of one op with the same reason and line share a row."""
    rows: dict[tuple, list[Rejection]] = defaultdict(list)
    for rejection in graph.rejections:
        rows[rejection.op, rejection.reason, rejection.location].append(rejection)
    table = Table()
    table.add_column("op", overflow="fold", ratio=3)
    table.add_column("calls", justify="right")
    table.add_column("why", ratio=4)
    table.add_column("line", overflow="fold", ratio=3)
    for (op, reason, location), calls in rows.items():
        cells = (op.removeprefix("aten."), str(len(calls)), reason, location or "")
        table.add_row(*map(_escape, cells))
    return table


def _break_text(graph_break: GraphBreak) -> str:
    lines = [f"\ngraph break at {graph_break.location or 'an unknown line'}"]
    if graph_break.line:
        lines.append(f"    {graph_break.line.strip()}")
    lines += [f"cause: {graph_break.cause}", f"remedy: {graph_break.remedy}"]
    return "\n".join([*lines, f"cost: {_cost_text(graph_break)}"])


def _cost_text(graph_break: GraphBreak) -> str:
    if not graph_break.resumes:
        return "Dynamo cannot go on after this line, so the whole function runs uncompiled."
    cost = graph_break.cost
    if cost is None or not cost.regions:
        return "no data is moved: no NPU region behind this line takes what one before it made."
    regions = _join(f"{name} ({macs:,} MACs)" for name, macs in zip(cost.regions, cost.macs))
    moved = f"{count(cost.bytes, 'byte')} leave the NPU and come back, between {regions}"
    if len(cost.regions) == cost.regions_without:
        return f"{moved}."
    together = count(len(cost.regions), "region")
    return f"{moved}; without the break these {together} could be {cost.regions_without}."


def _join(texts: Iterable[str]) -> str:
    *head, last = texts
    return f"{', '.join(head)} and {last}" if head else last


def _escape(text: str) -> str:
    return text.replace("[", r"\[")  # rich reads brackets as markup
