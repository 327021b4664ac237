"""The table of the suite `training`: a step of every network beside eager and Inductor."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from mlir_npu.benchmarks.engines import OURS_COMPILED
from mlir_npu.benchmarks.statistics import quartiles

COLUMNS = (OURS_COMPILED, "eager", "inductor")


def training_tables(document: dict, threads: int) -> Iterator[Table]:
    from mlir_npu.benchmarks.tables import HEADINGS, records_of, table

    made = table(
        f"training steps, {threads} thread(s): ms, median",
        "network", "batch", *(HEADINGS[name] for name in COLUMNS), "over\neager", "over\nInductor",
    )  # fmt: skip
    for record in records_of(document, "training", threads):
        times = {
            name: quartiles(outcome["values"])[1]
            for name, outcome in record["engines"].items()
            if "values" in outcome
        }
        ratios = [
            f"{times[peer] / times[OURS_COMPILED]:.2f}"
            if {peer, OURS_COMPILED} <= set(times)
            else "-"
            for peer in COLUMNS[1:]
        ]
        cells = (f"{times[name]:.0f}" if name in times else "-" for name in COLUMNS)
        batch = record["case"]["shape"][0]
        made.add_row(record["case"]["network"], str(batch), *cells, *ratios)
    if made.row_count:
        yield made
