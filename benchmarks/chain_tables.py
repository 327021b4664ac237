"""The tables of the suite `host`: every chain beside eager and Inductor."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from mlir_npu.benchmarks.engines import HOST, HOST_COMPILED, OURS
from mlir_npu.benchmarks.statistics import geometric_mean, quartiles, speed

# What is compared: programs with eager, which is called as directly, torch.compile with the same.
PAIRS = ((HOST, "eager"), (HOST_COMPILED, "inductor"))
COLUMNS = (HOST, HOST_COMPILED, OURS, "eager", "inductor")


def chain_tables(document: dict, threads: int) -> Iterator[Table]:
    """Microseconds of every case, then geometric means by group."""
    from mlir_npu.benchmarks.tables import HEADINGS, records_of, table

    found = [record for record in records_of(document, "host", threads) if _is_complete(record)]
    if not found:
        return
    engines = [name for name in COLUMNS if all(name in _medians(record) for record in found)]
    ratios = ("over\neager", "over\nInductor")
    cases = table(
        f"host parts, {threads} thread(s): microseconds, median",
        "chain", "shape", *(HEADINGS[name] for name in engines), *ratios,
        text_columns=2,
    )  # fmt: skip
    groups: dict[str, list[dict]] = {}
    for record in found:
        case, middle = record["case"], _medians(record)
        groups.setdefault(case["group"], []).append(record)
        cells = (f"{1e3 * middle[name]:.1f}" for name in engines)
        shape = "x".join(map(str, case["shape"]))
        cases.add_row(case["network"], shape, *cells, *(f"{r:.2f}" for r in _ratios(record)))
    yield cases
    means = table(
        f"host parts, {threads} thread(s): speed over eager and Inductor, geometric means",
        "group", "cases", *ratios,
    )  # fmt: skip
    for group, members in [*groups.items(), ("all", found)]:
        by_peer = zip(*map(_ratios, members), strict=True)
        means.add_row(group, str(len(members)), *(f"{geometric_mean(r):.2f}" for r in by_peer))
    yield means


def _is_complete(record: dict) -> bool:
    return all("values" in record["engines"].get(n, {}) for pair in PAIRS for n in pair)


def _medians(record: dict) -> dict[str, float]:
    return {
        name: quartiles(o["values"])[1] for name, o in record["engines"].items() if "values" in o
    }


def _ratios(record: dict) -> list[float]:
    """Our speed over each peer's, within rounds."""
    values = {name: outcome.get("values") for name, outcome in record["engines"].items()}
    return [speed(values[ours], values[peer]).median for ours, peer in PAIRS]
