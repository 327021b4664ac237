"""Engines of one case: checked, and then timed by turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir_npu.benchmarks.cases import Case, Effort
from mlir_npu.benchmarks.machine import Peaks
from mlir_npu.benchmarks.priority import high_priority
from mlir_npu.benchmarks.timing import time_in_turn

# an engine's name -> its call, and what its entry says of the first result
Prepare = Callable[[str], tuple[Callable[[], object], dict]]


def hold_contest(
    case: Case, names: Sequence[str], effort: Effort, subject: str, prepare: Prepare
) -> dict:
    """Entries of all engines and the peaks of the machine. `subject` is compared with the others.

    Raises RuntimeError if no engine can run the case.
    """
    peaks = Peaks(case.threads)
    engines: dict[str, dict] = {}
    calls: dict[str, Callable[[], object]] = {}
    for name in names:
        try:
            calls[name], engines[name] = prepare(name)
        except Exception as error:  # whatever an engine raises is its result
            engines[name] = {"error": f"{type(error).__name__}: {error}"[:500]}
    if not calls:
        raise RuntimeError(f"no engine can run this case: {engines}")
    subject = subject if subject in calls else next(iter(calls))
    with high_priority():
        rounds = time_in_turn(calls, effort, subject=subject, threads=case.threads)
        peaks.measure()
    for name, values in rounds.items():
        engines[name]["values"] = values
    return {"peak_gflops": peaks.peak, "copy_gbps": peaks.copy, "engines": engines}
