"""Compiles ResNet-18, MobileNetV2 and CREPE tiny, and shows what ran where, how right, how fast.

The tool behind scripts/demo. Exit code 1 if a result is off, a convolution ran on the host, or a
network fell into more regions than it should.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

import torch
from rich.console import Console
from rich.table import Table

import mlir_npu
from mlir_npu.scripts.networks import zoo
from mlir_npu.scripts.networks.trial import Trial, try_network

ROWS: tuple[tuple[str, Callable[[Trial], str]], ...] = (
    ("NPU regions", lambda t: f"{t.placement.regions}"),
    ("nodes on NPU / host", lambda t: f"{t.placement.npu_nodes} / {t.placement.host_nodes}"),
    ("multiply-accumulates", lambda t: f"{t.placement.macs / 1e6:,.1f} M"),
    ("  on the NPU", lambda t: f"{percent(t.placement.npu_macs, t.placement.macs)}"),
    ("  of convolutions", lambda t: percent(t.placement.npu_conv_macs, t.placement.conv_macs)),
    ("difference from eager", lambda t: f"{t.difference.largest:.1e}"),
    ("  tolerated", lambda t: f"{t.difference.tolerance:.1e}"),
    ("cold compile, s", lambda t: f"{t.compile_seconds:.1f}"),
    ("eager, ms (median)", lambda t: f"{t.eager.median:.2f}"),
    ("  least", lambda t: f"{t.eager.least:.2f}"),
    ("mlir_npu, ms (median)", lambda t: f"{t.ours.median:.2f}"),
    ("  least", lambda t: f"{t.ours.least:.2f}"),
)


class Progress:
    """Says which step a network is at, and that it still is, every few seconds."""

    EVERY = 10.0  # seconds

    def __init__(self, console: Console, name: str) -> None:
        self._console, self._name = console, name
        self._step, self._since = "", time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __call__(self, step: str) -> None:
        self._step, self._since = step, time.monotonic()
        self._console.print(f"{self._name}: {step}")

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        told = 0.0
        while not self._done.wait(0.5):
            now = time.monotonic()
            if now - max(self._since, told) >= self.EVERY:
                told = now
                seconds = now - self._since
                self._console.print(f"{self._name}:   still {self._step}, {seconds:.0f} s")


def percent(part: int, whole: int) -> str:
    """Rounded down, so that 100 % means all of it."""
    return f"{part * 1000 // whole / 10:g} %" if whole else "-"


def networks_table(trials: list[Trial]) -> Table:
    table = Table(title='torch.compile(model, backend="mlir_npu")')
    table.add_column("", no_wrap=True)
    for trial in trials:
        table.add_column(trial.network.name, justify="right")
    for title, cell in ROWS:
        table.add_row(title, *(cell(trial) for trial in trials))
    return table


def tones_table(trial: Trial) -> Table:
    table = Table(title="pitch, by compiled CREPE")
    for title in ("tone", "estimate", "off by"):
        table.add_column(title, justify="right")
    for tone in trial.tones:
        cents = f"{tone.cents:+.1f} cents"
        table.add_row(f"{tone.frequency:g} Hz", f"{tone.estimate:.2f} Hz", cents)
    return table


def main(arguments: list[str] | None = None) -> int:
    names = {network.name.lower().split()[0]: network for network in zoo.NETWORKS}
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--network",
        action="append",
        choices=list(names),
        type=str.lower,
        help="only this one (may be repeated)",
    )
    parser.add_argument("--threads", type=int, help="threads for eager and ours alike")
    parser.add_argument("--seconds", type=float, default=3.0, help="time to spend on timing each")
    parser.add_argument("--target", default="host", help="target name, or a path to a TOML file")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)

    console = Console(highlight=False)
    console.print(
        f"mlir-npu {mlir_npu.__version__}, torch {torch.__version__}, "
        f"threads: {torch.get_num_threads()}"
    )
    trials = []
    for name in options.network or names:
        network = names[name]
        with Progress(console, network.name) as progress:
            wanted = {"target": options.target}
            trials.append(try_network(network, wanted, seconds=options.seconds, say=progress))
    console.print(networks_table(trials))
    for trial in trials:
        if trial.tones:
            console.print(tones_table(trial))
    problems = [f"{t.network.name} {problem}" for t in trials for problem in t.problems()]
    for problem in problems:
        console.print(f"[red]FAILED[/red]: {problem}", soft_wrap=True)
    if not problems:
        console.print(
            "Every result is within tolerance of eager; every convolution ran on the NPU."
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
