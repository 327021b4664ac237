"""The fastest function wins only if it is faster beyond doubt."""

import itertools

import pytest

from mlir_npu.runtime import contest as contests
from mlir_npu.runtime.contest import contest, is_faster


class Race:
    """Functions that take the times that they are given, on a clock of their own."""

    def __init__(self, *durations):
        self.now, self.calls, self.order = 0.0, [0] * len(durations), []
        self.runs = [self._runner(i, iter(d)) for i, d in enumerate(durations)]

    def _runner(self, number, durations):
        def run():
            self.calls[number] += 1
            self.order.append(number)
            self.now += next(durations)

        return run

    def result(self):
        return contest(self.runs, lambda: None, clock=lambda: self.now)


def always(duration):
    return itertools.repeat(duration)


def test_the_fastest_wins():
    outcome = Race(always(1e-3), always(8e-4), always(6e-4), always(9e-4)).result()
    assert outcome.winner == 2
    assert (outcome.before, outcome.after) == pytest.approx((1e-3, 6e-4))


@pytest.mark.parametrize("other", [1e-3, 0.98e-3, 1.2e-3])
def test_ties_keep_the_first(other):
    outcome = Race(always(1e-3), always(other)).result()
    assert outcome.winner == 0
    assert outcome.before == outcome.after


def test_luck_does_not_last():
    """Fast in the first rounds only: the final is measured again."""
    lucky = itertools.chain([5e-4] * (1 + contests.ROUNDS), always(1e-3))
    assert Race(always(1e-3), lucky).result().winner == 0


def test_one_fast_call_is_not_enough():
    assert not is_faster([1.0, 1.0, 0.5], [1.0, 1.0, 1.0])
    assert not is_faster([0.9, 0.9, 0.9], [1.0, 1.0, 0.9])  # the best of the first is as good
    assert is_faster([0.9, 0.9, 0.9], [1.0, 1.0, 1.0])


def test_the_hopeless_drop_out():
    race = Race(always(1e-3), always(1e-2), always(9e-4))
    assert race.result().winner == 2
    assert race.calls[1] < race.calls[2]


def test_they_run_in_turn():
    race = Race(always(1e-3), always(1.1e-3))
    race.result()
    assert race.order == [0, 1] * (len(race.order) // 2)


def test_slow_ones_have_fewer_rounds():
    race = Race(always(10.0), always(10.0))
    race.result()
    assert race.calls == [1 + contests.FEWEST_ROUNDS] * 2
