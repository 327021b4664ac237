"""Runs cases, each in a process of its own, and gathers their records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from mlir_npu.benchmarks import machine, results
from mlir_npu.benchmarks.cases import Case, Effort
from mlir_npu.benchmarks.worker import request_for

LIMIT = 1800  # seconds of one process
LINES = 8  # of what a process said before it died


def run_cases(
    cases: Sequence[Case],
    effort: Effort,
    absent: dict[str, str],
    progress: Callable[[str], None] = lambda text: None,
    finished: Callable[[dict], None] = lambda document: None,
) -> dict:
    """The document of a run (see results.py). `finished` gets it after every case."""
    document = {
        "schema": results.SCHEMA,
        "machine": machine.describe(),
        "effort": effort.__dict__,
        "absent": absent,
        "records": [],
    }
    for number, case in enumerate(cases, 1):
        progress(f"[{number}/{len(cases)}] {case.suite}: {case.name} ({case.threads} thread(s))")
        document["records"].append(run_case(case, effort, absent))
        finished(document)
    return document


def run_case(case: Case, effort: Effort, absent: dict[str, str]) -> dict:
    """The record of a case; of the kinds that need it, one process per engine and repetition."""
    names = [name for name in case.engines if name not in absent]
    record = {"case": case.to_json(), "error": None, "load": os.getloadavg()[0], "engines": {}}
    if case.kind == "time":
        return record | run_worker(case, names, effort)
    for _ in range(effort.repetitions):
        for name in names:
            outcome = run_worker(case, [name], effort)
            _add(record["engines"], name, outcome.get("error"), outcome["engines"].get(name))
    return record


def _add(engines: dict, name: str, error: str | None, outcome: dict | None) -> None:
    """Appends the value of one more repetition; the first error stays."""
    known = engines.setdefault(name, outcome or {"error": error})
    if "error" in known or known is outcome:
        return
    if outcome is None:
        engines[name] = {"error": error}
    else:
        known["values"] += outcome["values"]


def run_worker(case: Case, names: list[str], effort: Effort) -> dict:
    """What a worker process wrote, or how it died."""
    # torch's pool and its peers' are as large as asked for, whatever the number of cores
    environment = os.environ | {"OMP_NUM_THREADS": str(case.threads)}
    with tempfile.TemporaryDirectory(prefix="mlir-npu-bench-") as folder:
        path = Path(folder) / "outcome.json"
        command = [sys.executable, "-m", "mlir_npu.benchmarks.worker", str(path)]
        request = json.dumps(request_for(case, names, effort))
        try:
            done = subprocess.run(
                command, input=request, capture_output=True, text=True, env=environment,
                timeout=LIMIT, check=False, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"the process did not end within {LIMIT} s", "engines": {}}
        if done.returncode or not path.exists():
            said = "\n".join(done.stderr.splitlines()[-LINES:])
            error = f"the process ended with code {done.returncode}: {said}"
            return {"error": error, "engines": {}}
        return json.loads(path.read_text())
