"""Pictures of a run. Needs matplotlib, the extra `picture`.

Bars: our speed over the best peer's, with quartiles. Curves: cost over the size of the input.
"""

from __future__ import annotations

from pathlib import Path

from mlir_npu.benchmarks import summary
from mlir_npu.benchmarks.engines import OURS
from mlir_npu.benchmarks.statistics import Ratio, geometric_mean, quartiles
from mlir_npu.benchmarks.summary import Comparison

FASTER, SLOWER = "#5f9e6e", "#d1603d"
BAR = 0.3  # inches


def draw_bars(document: dict, path: Path) -> bool:
    """Writes the picture; False if the run has neither layers nor networks."""
    panels = [
        (f"{suite}, {threads} thread(s)", bars(summary.comparisons(document, suite, threads)))
        for suite in ("layers", "networks")
        for threads in summary.threads_of(document, suite)
    ]
    panels = [(title, rows) for title, rows in panels if rows]
    if not panels:
        return False
    from matplotlib.figure import Figure

    heights = [len(rows) + 2 for _, rows in panels]
    figure = Figure(figsize=(9, BAR * sum(heights) + 1), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, (title, rows) in zip(axes, panels, strict=True):
        _panel(axis, title, rows)
    figure.savefig(path, dpi=150)
    return True


def bars(items: list[Comparison]) -> list[tuple[str, Ratio]]:
    """Layers: the classes, with quartiles over their layers. Networks: each, over its rounds."""
    if not items:
        return []
    if items[0].record["case"]["suite"] == "networks":
        return [
            (f"{item.record['case']['name']}, {item.record['case']['group']}", item.over_best)
            for item in items
        ]
    rows = []
    for name, group in summary.group_by(items).items():
        ratios = [item.over_best.median for item in group]
        low, _, high = quartiles(ratios)
        mean = geometric_mean(ratios)
        rows.append((name, Ratio(mean, min(low, mean), max(high, mean))))
    return rows


def _panel(axis, title: str, rows: list[tuple[str, Ratio]]) -> None:
    ratios = [ratio for _, ratio in rows]
    places = range(len(rows))
    axis.barh(
        places,
        [ratio.median for ratio in ratios],
        color=[FASTER if ratio.median >= 1 else SLOWER for ratio in ratios],
        xerr=[[r.median - r.low for r in ratios], [r.high - r.median for r in ratios]],
        ecolor="#555555",
    )
    for place, ratio in zip(places, ratios):
        axis.annotate(
            f"{ratio.median:.2f}",
            (ratio.high, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axis.axvline(1, color="black", linewidth=1)
    axis.set_yticks(places, [name for name, _ in rows])
    axis.invert_yaxis()
    axis.set_title(title, loc="left")
    axis.set_xlabel("speed over the best peer (1: equal; quartiles as lines)")
    axis.spines[["top", "right"]].set_visible(False)


def draw_curves(document: dict, path: Path) -> bool:
    """Fastest calls over sizes, both logarithmic; False without the suite `scaling`."""
    panels = [
        (f"{group}, {threads} thread(s)", members)
        for threads in summary.threads_of(document, "scaling")
        for group, members in summary.group_by(
            summary.comparisons(document, "scaling", threads)
        ).items()
    ]
    if not panels:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(panels), 4), layout="constrained")
    for axis, (title, members) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        sizes = [item.record["case"]["size"] for item in members]
        for engine in members[0].minima:
            axis.loglog(sizes, [item.minima[engine] for item in members], "o-", label=engine)
        first = members[0].minima[OURS]
        straight = [first * size / sizes[0] for size in sizes]
        axis.loglog(sizes, straight, "--", color="#9a9a9a", label="linear in ours")
        axis.set_title(f"cost over {title}", loc="left")
        axis.set_xlabel(title.partition(",")[0])
        axis.set_ylabel("ms")
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    return True
