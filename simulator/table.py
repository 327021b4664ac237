"""A timing run as tables."""

from __future__ import annotations

from collections import Counter

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mlir_npu.dialect.attributes import DRAM
from mlir_npu.simulator.costs import UNITS
from mlir_npu.simulator.result import KernelRun, ModuleRun
from mlir_npu.simulator.traffic import READ, WRITTEN

GOOD_SHARE = 0.8
CAUSES_SHOWN = 2


def render(run: ModuleRun, title: str) -> Group:
    """One row per distinct kernel, the whole network, and the kernels far from their roofline."""
    counted = Counter(kernel.name for kernel in run.calls)
    distinct = list({kernel.name: kernel for kernel in run.calls}.values())
    table = Table(title=title)
    table.add_column("kernel", no_wrap=True)
    table.add_column("calls", justify="right")
    table.add_column("shape")
    table.add_column("tile")
    table.add_column("cycles", justify="right")
    for unit in UNITS:
        table.add_column(unit, justify="right")
    table.add_column("MB", justify="right")
    table.add_column("MACs/B", justify="right")
    table.add_column("bound", no_wrap=True)
    table.add_column("of roofline", justify="right")
    table.add_column(f"lost to (below {GOOD_SHARE:.0%})")
    for kernel in distinct:
        table.add_row(*_row(kernel, counted[kernel.name]))
    return Group(table, Text(_whole(run)), *_laggards(run, distinct, counted))


def _row(kernel: KernelRun, calls: int) -> list[str]:
    return [
        kernel.name,
        str(calls),
        kernel.shape,
        kernel.tile,
        f"{kernel.cycles:,}",
        *(f"{kernel.utilisation(unit):.0%}" for unit in UNITS),
        f"{kernel.dram_bytes / 1e6:.2f}",
        f"{kernel.intensity:.1f}",
        kernel.bounded_by,
        _share(kernel.share),
        reason(kernel) if kernel.share < GOOD_SHARE else "",
    ]


def reason(kernel: KernelRun) -> str:
    """What the busiest unit loses most to, each with its share of the cycles.

    A unit that is busier than the one that bounds the roofline is named first.
    """
    unit = kernel.busiest
    found = list(kernel.losses(unit).items())[:CAUSES_SHOWN]
    texts = [f"{cause} ({cycles / kernel.cycles:.0%})" for cause, cycles in found]
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
