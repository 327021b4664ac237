"""Runs all tests of a checkout: lit with FileCheck, then pytest; the tool behind scripts/test.

Both report to the terminal as they do by themselves. At the end come the counts of both, and the
exit code is 0 only if both ran some test and none failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
LIT_TESTS = ROOT / "test" / "lit"


@dataclass(frozen=True)
class Counts:
    """How many tests of a runner passed, failed (errors included) and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        text = f"{self.passed} passed, {self.failed} failed"
        return f"{text}, {self.skipped} skipped" if self.skipped else text


def count(report: Path) -> Counts:
    """Reads a JUnit report; a runner that left none counts as one failure."""
    if not report.exists():
        return Counts(failed=1)
    suites = [s for s in ElementTree.parse(report).iter("testsuite") if s.get("tests")]
    total = sum(int(s.get("tests")) for s in suites)
    failed = sum(int(s.get("failures", 0)) + int(s.get("errors", 0)) for s in suites)
    skipped = sum(int(s.get("skipped", 0)) for s in suites)
    return Counts(total - failed - skipped, failed, skipped)


def run(title: str, command: list[str], report: Path) -> tuple[int, Counts]:
    print(f"\n[mlir-npu] {title}: {' '.join(command)}", flush=True)
    started = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    counts = count(report)
    seconds = time.monotonic() - started
    print(f"[mlir-npu] {title}: {counts} in {seconds:.0f} s", flush=True)
    return code, counts


def lit(options: argparse.Namespace, report: Path) -> list[str]:
    program = str(Path(sys.executable).with_name("lit"))
    return [program, "-sv", "-j", options.jobs, "--xunit-xml-output", str(report), str(LIT_TESTS)]


def pytest(options: argparse.Namespace, rest: list[str], report: Path) -> list[str]:
    flags = ["--fast"] * options.fast + ["--slow"] * options.slow
    program = [sys.executable, "-m", "pytest", "-n", options.jobs, f"--junitxml={report}"]
    return [*program, *flags, *rest]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Runs lit and pytest. All other arguments go to pytest.",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fast", action="store_true", help="leave out the real networks")
    size.add_argument("--slow", action="store_true", help="run the slow tests too")
    parser.add_argument("--only", choices=("lit", "pytest"), help="run only one of the two")
    parser.add_argument("-n", "--jobs", default=str(os.cpu_count() or 1), help="processes")
    options, rest = parser.parse_known_args(arguments)

    total, codes = Counts(), []
    with tempfile.TemporaryDirectory() as folder:
        for runner in (options.only,) if options.only else ("lit", "pytest"):
            report = Path(folder) / f"{runner}.xml"
            command = lit(options, report) if runner == "lit" else pytest(options, rest, report)
            code, counts = run(runner, command, report)
            total, codes = total + counts, [*codes, code]

    failed = any(codes) or total.failed or not total.passed
    print(f"\n{total}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
