"""A timing run as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mlir_npu.dialect.attributes import DRAM
from mlir_npu.simulator.costs import UNITS
from mlir_npu.simulator.result import KernelRun, ModuleRun
from mlir_npu.simulator.traffic import READ, WRITTEN

GOOD_SHARE = 0.8
CAUSES_SHOWN = 2
WORTH_SAYING = 0.01  # of the cycles


@dataclass(frozen=True)
class _Column:
    """heading; text of a kernel and its number of calls; rank: columns of high rank go first where
    there is no room."""

    heading: str
    cell: Callable[[KernelRun, int], str]
    rank: int
    left: bool = False


COLUMNS = (
    _Column("kernel", lambda run, calls: run.name, 0, left=True),
    _Column("calls", lambda run, calls: str(calls), 1),
    _Column("shape", lambda run, calls: run.shape, 0, left=True),
    _Column("tile", lambda run, calls: run.tile, 5, left=True),
    _Column("cycles", lambda run, calls: f"{run.cycles:,}", 0),
    *(
        _Column(unit, lambda run, calls, unit=unit: f"{run.utilisation(unit):.0%}", rank)
        for unit, rank in zip(UNITS, (2, 3, 2, 3))
    ),
    _Column("MB", lambda run, calls: f"{run.dram_bytes / 1e6:.2f}", 4),
    _Column("MACs/B", lambda run, calls: f"{run.intensity:.1f}", 6),
    _Column("bound", lambda run, calls: run.bounded_by, 4, left=True),
    _Column("of roofline", lambda run, calls: _share(run.share), 0),
    _Column(
        f"lost to (below {GOOD_SHARE:.0%})",
        lambda run, calls: reason(run) if run.share < GOOD_SHARE else "",
        7,
        left=True,
    ),
)


def render(run: ModuleRun, title: str, width: int) -> Group:
    """One row per distinct kernel, the whole network, and the kernels far from their roofline.

    width: in characters; columns that have no room are left out.
    """
    counted = Counter(kernel.name for kernel in run.calls)
    distinct = list({kernel.name: kernel for kernel in run.calls}.values())
    table = _table(distinct, counted, title, width)
    return Group(table, Text(_whole(run)), *_laggards(run, distinct, counted))


def _table(distinct: list[KernelRun], counted: Counter, title: str, width: int) -> Table:
    texts = {
        column: [column.heading, *(column.cell(run, counted[run.name]) for run in distinct)]
        for column in COLUMNS
    }
    kept = list(COLUMNS)
    while sum(_width(texts[column]) for column in kept) + 1 > width:
        highest = max(kept, key=lambda column: column.rank)
        if not highest.rank:
            break
        kept.remove(highest)
    table = Table(title=title)
    for column in kept:
        justify = "left" if column.left else "right"
        table.add_column(column.heading, justify=justify, no_wrap=column.rank > 0)
    for row in zip(*(texts[column][1:] for column in kept)):
        table.add_row(*row)
    return table


def _width(texts: list[str]) -> int:
    """Of a column with these cells, its border and spaces."""
    return max(Text.from_markup(text).cell_len for text in texts) + 3


def reason(kernel: KernelRun) -> str:
    """What the busiest unit loses most to, each with its share of the cycles.

    A unit that is busier than the one that bounds the roofline is named first.
    """
    unit = kernel.busiest
    shares = {cause: lost / kernel.cycles for cause, lost in kernel.losses(unit).items()}
    found = [(cause, share) for cause, share in shares.items() if share >= WORTH_SAYING]
    texts = [f"{cause} ({share:.0%})" for cause, share in found[:CAUSES_SHOWN]]
    if unit != kernel.bounded_by:
        texts.insert(0, f"{unit} is busy {kernel.utilisation(unit):.0%}")
    return "; ".join(texts)


def _share(share: float) -> str:
    color = "green" if share >= GOOD_SHARE else "yellow" if share >= GOOD_SHARE / 2 else "red"
    return f"[{color}]{share:.0%}[/{color}]"


def _whole(run: ModuleRun) -> str:
    seconds = run.cycles / run.target.clock_hz
    rate = 2 * run.macs / seconds / 1e9 if seconds else 0.0
    used = ", ".join(f"{unit} {run.utilisation(unit):.0%}" for unit in UNITS)
    lines = [
        f"all kernels: {run.cycles:,} cycles, {seconds * 1e3:.3f} ms at "
        f"{run.target.clock_hz / 1e9:g} GHz, {run.share:.0%} of the roofline "
        f"({round(run.bound):,} cycles)",
        f"{run.macs / 1e6:,.1f} M multiply-accumulates, {rate:,.1f} GFLOP/s; "
        f"dram read {run.bytes(DRAM, READ) / 1e6:.2f} MB, "
        f"written {run.bytes(DRAM, WRITTEN) / 1e6:.2f} MB",
        f"busy: {used}",
    ]
    if run.preparation:
        cycles = sum(kernel.cycles for kernel in run.preparation)
        lines.append(f"not counted: {cycles:,} cycles to pack weights, once until they change")
    return "\n".join(lines)


def _laggards(run: ModuleRun, distinct: list[KernelRun], counted: Counter) -> list[Text]:
    below = [kernel for kernel in distinct if kernel.share < GOOD_SHARE]
    if not below:
        return [Text(f"every kernel reaches {GOOD_SHARE:.0%} of its roofline")]
    below.sort(key=lambda kernel: -(kernel.cycles - kernel.bound) * counted[kernel.name])
    lines = [f"{len(below)} of {len(distinct)} kernels below {GOOD_SHARE:.0%}, costliest first:"]
    for kernel in below:
        part = kernel.cycles * counted[kernel.name] / run.cycles
        lines.append(
            f"  {kernel.name}, {kernel.shape}: {kernel.share:.0%} "
            f"({part:.1%} of all cycles): {reason(kernel)}"
        )
    return [Text("\n".join(lines))]
