"""Which of several functions that do the same is fastest, where measurements are noisy.

They run in turn, round after round, so that what slows the machine down slows all of them. The
first one, the defender, stays unless another is faster by more than noise, in the middle of its
times and at the best of them, in the first rounds and again in a final between the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

MARGIN = 0.03  # share of the defender's time that must be saved
HOPELESS = 1.5  # times as slow as the defender: no more rounds
ROUNDS, FINAL_ROUNDS = 9, 21
SECONDS = 0.5  # of calls in the first rounds, and in the final
FEWEST_ROUNDS = 5

Run = Callable[[], None]


@dataclass(frozen=True)
class Outcome:
    """winner: position of a function; before, after: seconds of the defender and of the winner."""

    winner: int
    before: float
    after: float


def contest(runs: Sequence[Run], between: Run, clock=time.perf_counter) -> Outcome:
    """between: what brings the caches to the same state before every call."""
    times = _rounds(runs, between, ROUNDS, clock)
    rivals = [i for i in range(1, len(runs)) if is_faster(times[i], times[0])]
    if not rivals:
        return Outcome(0, median(times[0]), median(times[0]))
    best = min(rivals, key=lambda i: median(times[i]))
    defended, attacked = _rounds((runs[0], runs[best]), between, FINAL_ROUNDS, clock)
    if not is_faster(attacked, defended):
        return Outcome(0, median(defended), median(defended))
    return Outcome(best, median(defended), median(attacked))


def is_faster(times: Sequence[float], defender: Sequence[float]) -> bool:
    """By more than noise."""
    limit = 1 - MARGIN
    return median(times) < limit * median(defender) and min(times) < limit * min(defender)


def _rounds(runs: Sequence[Run], between: Run, count: int, clock) -> list[list[float]]:
    """The times of every function; of those that are hopeless, of the first rounds only."""
    times: list[list[float]] = [[] for _ in runs]
    in_race = list(range(len(runs)))
    for run in runs:  # first calls touch new memory
        run()
    done, spent = 0, 0.0
    while done < count and (done < FEWEST_ROUNDS or spent < SECONDS):
        for i in in_race:
            between()
            start = clock()
            runs[i]()
            times[i].append(clock() - start)
            spent += times[i][-1]
        done += 1
        limit = HOPELESS * min(times[0])
        in_race = [i for i in in_race if done < 2 or i == 0 or min(times[i]) <= limit]
    return times
