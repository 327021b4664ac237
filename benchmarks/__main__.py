"""Runs benchmarks, or shows what an earlier run found. Exit code 1 if a result is wrong, a
convolution ran on the host, a process died, or a rate is above what the machine can do; 2 if there
is nothing to measure or to show; 130 after Ctrl-C, with the cases that were done in the output."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from mlir_npu.benchmarks import results
from mlir_npu.benchmarks.cases import NORMAL, QUICK, Case, select
from mlir_npu.benchmarks.engines import ENGINES, absent
from mlir_npu.benchmarks.picture import draw_bars, draw_curves
from mlir_npu.benchmarks.run import run_cases
from mlir_npu.benchmarks.suites import SUITES
from mlir_npu.benchmarks.tables import markdown, tables

DATA, TEXT, BARS, CURVES = "benchmark.json", "tables.md", "benchmark.png", "scaling.png"
REFUSED, INTERRUPTED = 2, 130


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/benchmark", description=__doc__)
    parser.add_argument(
        "--suite", action="append", choices=list(SUITES), help="only this one (may be repeated)"
    )
    parser.add_argument(
        "--filter", metavar="TEXT", help='only cases with TEXT in "suite/group/name"'
    )
    parser.add_argument(
        "--engine", action="append", choices=list(ENGINES), help="only this one (may be repeated)"
    )
    parser.add_argument("--threads", type=_positive, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--quick", action="store_true", help="few cases, few rounds")
    parser.add_argument("--few-rounds", action="store_true", help="all cases, few rounds")
    parser.add_argument(
        "--output", type=Path, default=Path("benchmark-results"), metavar="DIR",
        help=f"where {DATA}, {TEXT} and the pictures go (default: benchmark-results)",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument(
        "--show", type=Path, metavar="FILE", help="show the results in FILE and stop"
    )
    return parser.parse_args(arguments)


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    cases = [
        case
        for name in options.suite or SUITES
        for threads in options.threads
        for case in SUITES[name](threads, options.quick)
    ]
    return select(cases, options.filter)


def read(path: Path) -> dict:
    """An earlier run. Raises OSError and ValueError."""
    document = json.loads(path.read_text())
    results.check(document)
    return document


def refuse(message: str) -> int:
    print(f"scripts/benchmark: {message}", file=sys.stderr)
    return REFUSED


def show(document: dict, console: Console) -> int:
    """Prints a run; the exit code."""
    for table in tables(document):
        console.print(table)
    described = document["machine"]
    console.print(f"{described['cpu']}, {described['cores']} cores")
    for threads, peak in results.best_peaks(document).items():
        console.print(f"FMA peak on {threads} thread(s): {peak:.1f} GFLOP/s")
    if copies := [r["copy_gbps"] for r in document["records"] if "copy_gbps" in r]:
        console.print(f"copies: {max(copies):.1f} GB/s read and written")
    console.print(", ".join(f"{k} {v}" for k, v in described["versions"].items()))
    for name, reason in document["absent"].items():
        console.print(f"[yellow]absent[/yellow]: {escape(f'{name}: {reason}')}", soft_wrap=True)
    for text in results.failed_peers(document):
        console.print(f"[yellow]peer failed[/yellow]: {escape(text)}", soft_wrap=True)
    problems = results.problems(document)
    for text in problems:
        console.print(f"[red]FAILED[/red]: {escape(text)}", soft_wrap=True)
    return 1 if problems else 0


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    if options.show:
        try:
            document = read(options.show)
        except (OSError, ValueError) as error:
            return refuse(f"cannot show {options.show}: {error}")
        return show(document, console)
    cases = chosen_cases(options)
    if not cases:
        return refuse(f"no case has {options.filter!r} in its name; --list tells the names")
    if options.list:
        for case in cases:
            console.print(f"{case.suite}/{case.group}/{case.name}, {case.threads} thread(s)")
        return 0

    names = {name for case in cases for name in case.engines}
    not_here = absent(tuple(sorted(names)))
    if options.engine:
        left_out = names - set(options.engine)
        not_here |= dict.fromkeys(sorted(left_out), "left out with --engine")
    if names <= set(not_here):
        missing = "; ".join(f"{name}: {reason}" for name, reason in not_here.items())
        return refuse(f"none of the engines of these cases is there ({missing})")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=options.output).close()  # before hours of measuring
    except OSError as error:
        return refuse(f"cannot write to {options.output}: {error}")

    def save(document: dict) -> None:
        (options.output / DATA).write_text(json.dumps(document, indent=1) + "\n")

    effort = QUICK if options.quick or options.few_rounds else NORMAL
    try:
        document = run_cases(cases, effort, not_here, console.print, save)
    except KeyboardInterrupt:
        print(f"stopped; cases that were done are in {options.output / DATA}", file=sys.stderr)
        return INTERRUPTED
    results.check(document)
    code = show(document, console)
    text = "\n".join(markdown(table) for table in tables(document))
    (options.output / TEXT).write_text(text)
    written = [DATA, TEXT]
    try:
        for name, draw in ((BARS, draw_bars), (CURVES, draw_curves)):
            written += [name] * draw(document, options.output / name)
    except ImportError:
        console.print("no pictures without matplotlib (the extra `picture`)")
    console.print(f"written to {options.output}: {', '.join(written)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
