"""Runs PyTorch's operator database against the backend, in processes of its own, and keeps score.

    python test/conformance/run.py --results FILE [--suite forward]... [--shard 1/4] [--op add]...

Operators that the file already has results for are not run again (--again: those that failed are).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from opinfo_cases import SUITES, all_ops, dtype_of
from opinfo_known import problems

HERE = Path(__file__).parent
SILENCE = 900  # seconds without a new sample after which a worker hangs


class Crash(Exception):
    """The worker died or hangs; the message says how."""


class Worker:
    """A worker process and the file that says where it is."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mlir-npu-conformance-")
        self._progress = Path(self._folder.name) / "progress"
        self._errors = (Path(self._folder.name) / "stderr").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "opinfo_worker.py"), str(self._progress)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "PYTHONFAULTHANDLER": "1"},
        )

    def ask(self, request: dict) -> dict:
        """Raises Crash."""
        with contextlib.suppress(BrokenPipeError):  # there will be no answer either
            print(json.dumps(request), file=self._process.stdin, flush=True)
        while not select.select([self._process.stdout], [], [], SILENCE)[0]:
            if time.time() - self._progress.stat().st_mtime > SILENCE:
                raise Crash("hangs")
        answer = self._process.stdout.readline()
        if not answer:
            raise Crash(f"crashed with {self._process.wait()}: {self._last_words()}")
        return json.loads(answer)

    def position(self) -> int:
        """Number of the sample it is at; -1 before the first."""
        return int(self._progress.read_text() or -1) if self._progress.exists() else -1

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        fatal = [i for i, line in enumerate(lines) if "Fatal" in line or "LLVM ERROR" in line]
        start = fatal[-1] if fatal else max(len(lines) - 3, 0)
        return " | ".join(lines[start : start + 4])[:400]


class Pool:
    """One worker at a time, replaced when it dies or has grown large. limit: samples of each
    operator, None for all."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._worker: Worker | None = None

    def run(self, suite: str, name: str) -> dict:
        """Verdicts on all samples of an operator; crashes are among them."""
        crashes: dict[str, str] = {}
        while True:
            self._worker = self._worker or Worker()
            request = {"suite": suite, "op": name, "limit": self._limit}
            try:
                answer = self._worker.ask(request | {"skip": [int(index) for index in crashes]})
            except Crash as crash:
                index = self._worker.position()
                self.close()
                crashes[str(index)] = str(crash)
                if index < 0 or len(crashes) > 20:
                    return _nothing_but(crashes)
                continue
            if answer.pop("tired"):
                self.close()
            answer["failed"] |= crashes
            return answer

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def _nothing_but(crashes: dict[str, str]) -> dict:
    empty = dict.fromkeys(("total", "passed", "uncaptured", "left_out"), 0)
    return {**empty, "failed": crashes, "upstream": {}, "engines": {}}


def read_results(path: Path) -> dict[str, dict[str, dict]]:
    """Results by suite and operator; later lines replace earlier ones."""
    found: dict[str, dict[str, dict]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        record = json.loads(line)
        found.setdefault(record.pop("suite"), {})[record.pop("op")] = record
    return found


def run(
    suites: list[str], names: list[str], path: Path, *, limit: int | None, again: bool
) -> dict[str, dict]:
    """Run what the file does not have yet, and append to it."""
    done = read_results(path)
    with contextlib.closing(Pool(limit)) as pool, path.open("a") as results:
        for suite, name in cases(suites, names):
            old = done.get(suite, {}).get(name)
            if old is not None and not (again and old["failed"]):
                continue
            started = time.monotonic()
            answer = pool.run(suite, name)
            record = {"suite": suite, "op": name, **answer}
            record["dtype"] = str(dtype_of(all_ops()[name], SUITES[suite])).removeprefix("torch.")
            record["seconds"] = round(time.monotonic() - started, 2)
            results.write(json.dumps(record) + "\n")
            results.flush()
    return read_results(path)


def cases(suites: Iterable[str], names: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a suite and an operator that has samples for it."""
    for suite in suites:
        for name in names:
            if dtype_of(all_ops()[name], SUITES[suite]) is not None:
                yield suite, name


def shard(names: list[str], which: str) -> list[str]:
    """Part k of n of the operators, "k/n" with k from 1."""
    number, count = map(int, which.split("/"))
    return names[number - 1 :: count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="a file of JSON lines")
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all of them")
    parser.add_argument("--op", action="append", help="full name; default: all of them")
    parser.add_argument("--shard", default="1/1", help="k/n: part k of n of the operators")
    parser.add_argument("--again", action="store_true", help="run again what failed")
    parser.add_argument("--limit", type=int, help="run so many samples of each operator only")
    options = parser.parse_args()
    names = options.op or shard(sorted(all_ops()), options.shard)
    suites = options.suite or list(SUITES)
    results = run(suites, names, options.results, limit=options.limit, again=options.again)
    found = []
    for suite in suites:
        mine = {name: results[suite][name] for name in names if name in results.get(suite, {})}
        found += problems(suite, mine, complete=options.limit is None)
    print("\n".join(found))
    print(f"{len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
