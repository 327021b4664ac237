"""A timing run as a picture: what each unit does above how full the memories are.

One kernel is drawn op by op. Many kernels are drawn as the share of time that each unit is busy.
Needs matplotlib, the extra `picture`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mlir_npu.dialect.attributes import ACC, SRAM
from mlir_npu.simulator.costs import DMA_IN, DMA_OUT, MATRIX, VECTOR
from mlir_npu.simulator.result import KernelRun, ModuleRun
from mlir_npu.words import count

ROWS = (DMA_IN, MATRIX, VECTOR, DMA_OUT)  # in the order in which data passes through them
COLORS = {
    "load": "#4878a8",
    "conv2d": "#d1603d",
    "matmul": "#d1603d",
    "batch_matmul": "#d1603d",
    "depthwise_conv2d": "#c98b2b",
    "pool2d": "#c98b2b",
    "reduce": "#8d6bb1",
    "winograd_input": "#b5739d",
    "winograd_output": "#b5739d",
    "drain": "#5f9e6e",
    "eltwise": "#5f9e6e",
    "fill": "#9a9a9a",
    "store": "#56a3a6",
}
UNIT_COLORS = {DMA_IN: "#4878a8", MATRIX: "#d1603d", VECTOR: "#5f9e6e", DMA_OUT: "#56a3a6"}
SPACE_COLORS = {SRAM: "#8c8c8c", ACC: "#c4a06c"}
MEANING = {
    "load": "load (dram to sram)",
    "store": "store (sram to dram)",
    "drain": "drain (acc to sram, epilogue)",
    "fill": "fill (clear accumulators)",
}
MOST_BARS = 3000
NARROW = 0.002  # of the width: such bars need an edge to be seen
NAMED = 0.018  # of the width: kernels that have room for their name
BINS = 400
WIDTH = 12.0  # inches


SUFFIXES = (".svg", ".png")


class MissingMatplotlib(RuntimeError):
    """Pictures need a package that is not there."""


def draw(run: ModuleRun, path: Path, name: str) -> None:
    """Write a file with one of SUFFIXES, with `name` as its title.

    Raises MissingMatplotlib.
    """
    figures = matplotlib_figures()
    kernels = run.calls
    alone = len(kernels) == 1 and len(kernels[0].events) <= MOST_BARS
    heights = [2.4 if alone else 3.2, 1.0, 1.0]
    figure = figures.Figure(figsize=(WIDTH, 6.2), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True, height_ratios=heights)
    if alone:
        _bars(axes[0], kernels[0])
        figure.suptitle(_kernel_title(kernels[0], name), fontsize=11)
    else:
        _shares(axes[0], run)
        figure.suptitle(_network_title(run, name), fontsize=11)
    for axis, space in zip(axes[1:], (SRAM, ACC)):
        _occupancy(axis, run, space)
    axes[-1].set_xlabel(f"cycles at {run.target.clock_hz / 1e9:g} GHz")
    axes[-1].set_xlim(0, max(1, run.cycles))
    axes[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.savefig(path, dpi=110)


def matplotlib_figures() -> Any:
    """The module that makes figures. Raises MissingMatplotlib."""
    try:
        import matplotlib.figure
    except ImportError:
        raise MissingMatplotlib(
            "pictures need matplotlib: pip install 'mlir-npu[picture]'"
        ) from None
    return matplotlib.figure


def _kernel_title(kernel: KernelRun, name: str) -> str:
    return (
        f"{name}, {kernel.name}: {kernel.shape}, tile {kernel.tile}, on {kernel.target.name}\n"
        f"{kernel.cycles:,} cycles, {kernel.share:.0%} of the roofline "
        f"(bound by {kernel.bounded_by})"
    )


def _network_title(run: ModuleRun, name: str) -> str:
    return (
        f"{name}, {count(len(run.calls), 'kernel')} on {run.target.name}: {run.cycles:,} cycles, "
        f"{run.share:.0%} of the roofline"
    )


def _bars(axis: Any, kernel: KernelRun) -> None:
    """One row per channel, one bar per op."""
    rows = [(unit, channel) for unit in ROWS for channel in range(kernel.channels[unit])]
    spans: dict[str, dict[tuple[str, int], list[tuple[int, int]]]] = {}
    for event in kernel.events:
        place = event.unit, event.channel
        own = spans.setdefault(event.name, {}).setdefault(place, [])
        own.append((event.start, event.end - event.start))
    for name, places in spans.items():
        label = MEANING.get(name, name)
        for place, bars in places.items():
            low = len(rows) - 1 - rows.index(place)
            narrow = max(length for _, length in bars) < NARROW * kernel.cycles
            axis.broken_barh(
                bars,
                (low - 0.38, 0.76),
                facecolor=COLORS[name],
                edgecolor=COLORS[name] if narrow else "white",
                linewidth=0.8 if narrow else 0.4,
                label=label,
            )
            label = None
    axis.set_yticks(range(len(rows)), [_row_text(kernel, *place) for place in reversed(rows)])
    axis.set_ylim(-0.6, len(rows) - 0.4)
    axis.set_title("what each unit does (and the share of time that it is busy)", fontsize=9)
    axis.legend(loc="lower left", bbox_to_anchor=(0, -0.22), ncols=len(spans), fontsize=8,
                frameon=False)  # fmt: skip


def _row_text(kernel: KernelRun, unit: str, channel: int) -> str:
    name = unit if kernel.channels[unit] == 1 else f"{unit} {channel}"
    return f"{name} ({kernel.utilisation(unit):.0%})"


def _shares(axis: Any, run: ModuleRun) -> None:
    """One row per unit: share of each slice of time that it is busy."""
    edges = np.linspace(0, run.cycles, BINS + 1)
    for row, unit in enumerate(reversed(ROWS)):
        busy = _busy_by_bin(run, unit, edges)
        axis.fill_between(edges[:-1], row, row + 0.9 * busy, step="post",
                          color=UNIT_COLORS[unit], linewidth=0)  # fmt: skip
        axis.axhline(row, color="#444444", linewidth=0.6)
        axis.axhline(row + 0.9, color="#bbbbbb", linewidth=0.5, linestyle=":")
    begin = 0
    for kernel in run.calls:
        axis.axvline(begin, color="#dddddd", linewidth=0.5, zorder=0)
        if kernel.cycles > NAMED * run.cycles:
            middle = begin + kernel.cycles / 2
            axis.text(middle, len(ROWS), kernel.name, fontsize=6.5, rotation=50, va="bottom")
        begin += kernel.cycles
    labels = [f"{unit} ({run.utilisation(unit):.0%})" for unit in reversed(ROWS)]
    axis.set_yticks([row + 0.45 for row in range(len(ROWS))], labels)
    axis.set_ylim(-0.05, len(ROWS))
    axis.set_title(
        "busy share of each unit, from 0 (line) to 100 % (dots); a kernel begins at each grey line",
        fontsize=9,
        pad=42,
    )


def _busy_by_bin(run: ModuleRun, unit: str, edges: np.ndarray) -> np.ndarray:
    """Share of every bin that the unit is busy, averaged over its channels."""
    starts, ends, begin = [], [], 0
    for kernel in run.calls:
        own = [event for event in kernel.events if event.unit == unit]
        starts += [begin + event.start for event in own]
        ends += [begin + event.end for event in own]
        begin += kernel.cycles
    if not starts:
        return np.zeros(len(edges) - 1)
    spent = [np.minimum(edge, ends).sum() - np.minimum(edge, starts).sum() for edge in edges]
    channels = run.calls[0].channels[unit]
    return np.diff(spent) / (np.diff(edges) * channels)


def _occupancy(axis: Any, run: ModuleRun, space: str) -> None:
    times, levels = _levels(run, space)
    size = {SRAM: run.target.sram.bytes, ACC: run.target.acc.bytes}[space] / 1024
    axis.fill_between(
        times, levels, step="post", color=SPACE_COLORS[space], linewidth=0,
        label="bytes in live buffers",
    )  # fmt: skip
    if max(levels) <= size:
        label = f"capacity, {size:g} KiB"
        axis.axhline(size, color="#b22222", linewidth=1, linestyle="--", label=label)
        axis.set_ylim(0, size * 1.12)
    axis.set_ylabel(f"{space}\nKiB", fontsize=9)
    axis.legend(loc="upper right", bbox_to_anchor=(1, 1.27), ncols=2, fontsize=8, frameon=False)


def _levels(run: ModuleRun, space: str) -> tuple[np.ndarray, np.ndarray]:
    """KiB over cycles; of curves with more points than can be drawn, the highest of each slice."""
    times, levels, begin = [0], [0.0], 0
    for kernel in run.calls:
        for time, level in kernel.occupancy[space]:
            times.append(begin + time)
            levels.append(level / 1024)
        begin += kernel.cycles
    times.append(begin)
    levels.append(0.0)
    if len(times) <= MOST_BARS:
        return np.array(times), np.array(levels)
    edges = np.linspace(0, run.cycles, BINS + 1)
    first = np.searchsorted(times, edges, side="right") - 1
    spans = zip(first, [*first[1:], len(times) - 1])
    return edges, np.array([max(levels[a : b + 1]) for a, b in spans])
