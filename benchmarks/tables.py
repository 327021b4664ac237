"""The tables at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.table import Table

from mlir_npu.benchmarks import summary
from mlir_npu.benchmarks.chain_tables import chain_tables
from mlir_npu.benchmarks.engines import (
    HOST,
    HOST_COMPILED,
    OURS,
    OURS_COMPILED,
    OURS_LAST,
    SIDE_BY_SIDE,
)
from mlir_npu.benchmarks.results import best_peaks
from mlir_npu.benchmarks.statistics import exponent, geometric_mean, quartiles
from mlir_npu.benchmarks.summary import Comparison, GroupSummary
from mlir_npu.benchmarks.training_tables import training_tables

HEADINGS = {
    OURS: "mlir_npu",
    OURS_LAST: "mlir_npu,\nch. last",
    OURS_COMPILED: "mlir_npu,\ntorch.compile",
    HOST: "host part,\nprogram",
    HOST_COMPILED: "host part,\ntorch.compile",
    "eager": "eager",
    "channels_last": "eager,\nch. last",
    "inductor": "Inductor",
    "frozen": "Inductor,\nfrozen",
    "onnxruntime": "ONNX\nRuntime",
    "openvino": "OpenVINO",
    "dynamo": "Dynamo\nalone",
}
ENGINE_COLUMNS = tuple(HEADINGS[name] for name in SIDE_BY_SIDE)


def table(title: str, *columns: str, text_columns: int = 1) -> Table:
    made = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        left = number < text_columns
        made.add_column(column, justify="left" if left else "right", no_wrap=left)
    return made


def markdown(made: Table) -> str:
    """The table as in a page of docs: its title, then rows between bars."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell.replace(chr(10), ' ') for cell in cells)} |"

    rows = [line(cells) for cells in zip(*(column.cells for column in made.columns))]
    marks = ["---:" if column.justify == "right" else "---" for column in made.columns]
    head = [line(str(column.header) for column in made.columns), line(marks)]
    return "\n".join([f"{made.title}:", "", *head, *rows, ""])


def tables(document: dict) -> Iterator[Table]:
    for suite, show in SHOWN.items():
        for threads in summary.threads_of(document, suite):
            yield from show(document, threads)


def layer_tables(document: dict, threads: int) -> Iterator[Table]:
    """A row per class, then the layers in which a peer is faster."""
    items = summary.comparisons(document, "layers", threads)
    if not items:
        return
    peak = best_peaks(document)[threads]
    yield _class_table(items, threads, peak)
    yield _layer_table(items, threads, peak)


def _class_table(items: list[Comparison], threads: int, peak: float) -> Table:
    made = table(
        f"layers, {threads} thread(s): speed over the best peer of each layer, geometric means",
        "class", "layers", "best peer,\nGFLOP/s", *ENGINE_COLUMNS,
        "ours, by\nfastest calls", "ours over the\nclass's best", "ours,\n% of peak", "wins",
    )  # fmt: skip
    for name, group in summary.group_by(items).items():
        made.add_row(name, *_class_cells(summary.summarise(group, peak)))
    made.add_section()
    made.add_row("all", *_class_cells(summary.summarise(items, peak)))
    return made


def _class_cells(found: GroupSummary) -> Iterator[str]:
    yield f"{found.count}"
    yield f"{found.rate:.0f}"
    yield from (
        f"{found.speeds[name]:.2f}" if name in found.speeds else "-" for name in SIDE_BY_SIDE
    )
    yield f"{found.by_minimum:.2f}"
    yield f"{found.over_group_best:.2f}"
    yield f"{100 * found.of_peak:.0f}"
    yield f"{found.wins}"


def _layer_table(items: list[Comparison], threads: int, peak: float) -> Table:
    made = table(
        f"layers, {threads} thread(s), slowest first: ours over the best peer (quartiles)",
        "layer", "best peer", "ours, ms", "peer, ms", "ratio", "quartiles",
        "by fastest\ncalls", "ours, %\nof peak", "Winograd", text_columns=2,
    )  # fmt: skip
    for item in sorted(items, key=lambda item: item.over_best.median):
        ratio, peer = item.over_best, item.best_peer
        winograd = item.record["engines"][OURS]["notes"].get("winograd")
        made.add_row(
            item.record["case"]["name"],
            HEADINGS[peer].replace("\n", " "),
            f"{item.medians[OURS]:.3f}",
            f"{item.medians[peer]:.3f}",
            f"{ratio.median:.2f}",
            f"{ratio.low:.2f} - {ratio.high:.2f}",
            f"{item.over_best_by_minimum:.2f}",
            f"{100 * item.rate(OURS) / peak:.0f}",
            "yes" if winograd else "",
        )
    return made


def network_tables(document: dict, threads: int) -> Iterator[Table]:
    items = summary.comparisons(document, "networks", threads)
    for group, members in summary.group_by(items).items():
        made = table(
            f"networks, {group}, {threads} thread(s): ms, median (least)",
            "network", *ENGINE_COLUMNS,
            "ours over\nthe best", "quartiles", "by fastest\ncalls",
        )  # fmt: skip
        for item in members:
            ratio = item.over_best
            made.add_row(
                item.record["case"]["name"],
                *(_milliseconds(item, name) for name in SIDE_BY_SIDE),
                f"{ratio.median:.2f}",
                f"{ratio.low:.2f} - {ratio.high:.2f}",
                f"{item.over_best_by_minimum:.2f}",
            )
        mean = geometric_mean(item.over_best.median for item in members)
        least = geometric_mean(item.over_best_by_minimum for item in members)
        made.add_section()
        blanks = [""] * len(SIDE_BY_SIDE)
        made.add_row("geometric mean", *blanks, f"{mean:.2f}", "", f"{least:.2f}")
        yield made


def _milliseconds(item: Comparison, name: str) -> str:
    if name not in item.medians:
        return "failed" if name in item.record["engines"] else "-"
    return f"{item.medians[name]:.3g} ({item.minima[name]:.3g})"


def overhead_tables(document: dict, threads: int) -> Iterator[Table]:
    """Microseconds per call, and above Dynamo's own within rounds."""
    for record in records_of(document, "overhead", threads):
        made = table(
            f"{record['case']['name']}, {threads} thread(s): microseconds per call",
            "engine", "median", "least", "over Dynamo alone, median", "by fastest calls",
        )  # fmt: skip
        values = {n: o["values"] for n, o in record["engines"].items() if "values" in o}
        base = values.get("dynamo")
        for name, times in values.items():
            extra = least = "-"
            if base and name not in ("dynamo", "eager"):
                _, middle, _ = quartiles([a - b for a, b in zip(times, base, strict=True)])
                extra, least = f"{1e3 * middle:+.1f}", f"{1e3 * (min(times) - min(base)):+.1f}"
            heading = HEADINGS[name].replace("\n", " ")
            _, middle, _ = quartiles(times)
            made.add_row(heading, f"{1e3 * middle:.1f}", f"{1e3 * min(times):.1f}", extra, least)
        yield made


def process_tables(suite: str, unit: str) -> Callable[[dict, int], Iterator[Table]]:
    """Of what is measured in fresh processes: medians, and ours as a part of each."""

    def show(document: dict, threads: int) -> Iterator[Table]:
        for record in records_of(document, suite, threads):
            name, group = record["case"]["name"], record["case"]["group"]
            made = table(
                f"{group} of {name}, {threads} thread(s), {unit}",
                "engine", "median", "least", "later calls", "ours / this",
            )  # fmt: skip
            outcomes = {n: o for n, o in record["engines"].items() if "values" in o}
            middles = {n: quartiles(o["values"])[1] for n, o in outcomes.items()}
            for engine, outcome in outcomes.items():
                run = outcome["notes"].get("run")
                made.add_row(
                    HEADINGS[engine].replace("\n", " "),
                    f"{middles[engine]:.1f}",
                    f"{min(outcome['values']):.1f}",
                    "" if run is None else f"{run:.1f}",
                    f"{middles[OURS] / middles[engine]:.2f}" if OURS in middles else "-",
                )
            yield made

    return show


def scaling_tables(document: dict, threads: int) -> Iterator[Table]:
    """Milliseconds by size, and the exponent of the growth."""
    items = summary.comparisons(document, "scaling", threads)
    for group, members in summary.group_by(items).items():
        engines = [n for n in SIDE_BY_SIDE if all(n in item.medians for item in members)]
        made = table(
            f"cost over the number of {group}, {threads} thread(s), ms",
            "input", *(HEADINGS[name] for name in engines), "ours over\nthe best",
        )  # fmt: skip
        for item in members:
            cells = (f"{item.medians[name]:.2f}" for name in engines)
            made.add_row(item.record["case"]["name"], *cells, f"{item.over_best.median:.2f}")
        if len(members) > 1:
            sizes = [item.record["case"]["size"] for item in members]
            fits = (exponent(sizes, [i.minima[name] for i in members]) for name in engines)
            made.add_section()
            made.add_row("exponent (1: linear)", *(f"{fit:.2f}" for fit in fits), "")
        yield made


def records_of(document: dict, suite: str, threads: int) -> list[dict]:
    return [
        record
        for record in document["records"]
        if (record["case"]["suite"], record["case"]["threads"]) == (suite, threads)
        and not record.get("error")
    ]


SHOWN: dict[str, Callable[[dict, int], Iterator[Table]]] = {
    "layers": layer_tables,
    "networks": network_tables,
    "overhead": overhead_tables,
    "compile": process_tables("compile", "seconds"),
    "memory": process_tables("memory", "MB over torch and the weights"),
    "scaling": scaling_tables,
    "host": chain_tables,
    "training": training_tables,
}
