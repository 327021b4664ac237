"""Calls of several engines by turns: A B C A B C ..., until the ratios are known well enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from mlir_npu.benchmarks.cases import Effort
from mlir_npu.benchmarks.statistics import is_settled

SAMPLE = 2e-3  # seconds that the timed calls of one round take at least
LONG_CALL = 20e-3  # seconds after which it does not matter what the caches held before
WAKING = 6  # calls in which the threads of an engine wake up
PAUSE = 50e-3  # seconds in which the idle threads of the engine before stop spinning


def _calls_per_sample(call: Callable[[], object]) -> int:
    """From the fastest call: the first ones wait, for milliseconds, until idle threads wake up."""
    return max(1, math.ceil(SAMPLE / max(min(_seconds(call) for _ in range(WAKING)), 1e-7)))


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _sample(call: Callable[[], object], count: int, pause: float) -> float:
    """Milliseconds per call. Results are dropped at once, so that the next can have the memory."""
    if pause:
        time.sleep(pause)
    if (seconds := _seconds(call)) < LONG_CALL:
        for _ in range(WAKING if pause else 0):
            call()
        started = time.perf_counter()
        for _ in range(count):
            call()
        seconds = (time.perf_counter() - started) / count
    return 1e3 * seconds


def time_in_turn(
    calls: Mapping[str, Callable[[], object]],
    effort: Effort,
    *,
    subject: str,
    threads: int = 1,
) -> dict[str, list[float]]:
    """Milliseconds per call of every engine, one value per round.

    A round calls each engine once to warm the caches and then long enough to be timed. Rounds go on
    until the median ratio of `subject` to each of the others is settled, or time is up.
    """
    counts = {name: _calls_per_sample(call) for name, call in calls.items()}
    pause = PAUSE if threads > 1 else 0.0
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + effort.seconds
    for number in range(1, effort.max_rounds + 1):
        for name, call in calls.items():
            rounds[name].append(_sample(call, counts[name], pause))
        if number < effort.min_rounds:
            continue
        others = (rounds[name] for name in calls if name != subject)
        if time.perf_counter() >= end or is_settled(rounds[subject], others, effort.within):
            break
    return rounds
