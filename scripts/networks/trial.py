"""Compiles one network with backend="mlir_npu", compares it with eager and times both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from mlir_npu import Explanation
from mlir_npu.lowering.report import collect
from mlir_npu.scripts.networks import crepe, zoo
from mlir_npu.scripts.networks.comparison import Difference, compare

MAX_CENTS = 20.0
MIN_ROUNDS, MAX_ROUNDS = 5, 200


@dataclass(frozen=True)
class Times:
    """Milliseconds of one call."""

    least: float
    median: float


@dataclass(frozen=True)
class Tone:
    """A tone and what CREPE, compiled, takes it for; Hz and cents."""

    frequency: float
    estimate: float

    @property
    def cents(self) -> float:
        return crepe.cents_off(self.estimate, self.frequency)


@dataclass(frozen=True)
class Trial:
    """What came of one network."""

    network: zoo.Network
    placement: Explanation
    difference: Difference
    compile_seconds: float  # the first call, all of it
    eager: Times
    ours: Times
    tones: tuple[Tone, ...] = ()

    def problems(self) -> list[str]:
        """What does not hold that should; one sentence each."""
        found = []
        if not self.difference.acceptable:
            found.append(
                f"differs from eager by {self.difference.largest:.2e}, "
                f"tolerated is {self.difference.tolerance:.2e}"
            )
        if self.placement.npu_conv_macs < self.placement.conv_macs:
            found.append(
                f"{self.placement.conv_macs - self.placement.npu_conv_macs:,} of "
                f"{self.placement.conv_macs:,} multiply-accumulates of convolutions ran on the host"
            )
        most = self.network.max_regions
        if most is not None and self.placement.regions > most:
            found.append(f"needs {self.placement.regions} NPU regions, at most {most} are expected")
        found += [
            f"takes {tone.frequency:g} Hz for {tone.estimate:.2f} Hz, {tone.cents:+.1f} cents off"
            for tone in self.tones
            if not abs(tone.cents) <= MAX_CENTS
        ]
        return found


def try_network(
    network: zoo.Network,
    options: Mapping[str, object],
    *,
    seconds: float = 3.0,
    say: Callable[[str], None] = lambda text: None,
) -> Trial:
    """Builds, compiles, compares `network`; times eager and ours in turn for `seconds`."""
    say("building")
    model, inputs = network.build(), network.inputs()
    with torch.no_grad():
        expected = model(*inputs)
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="mlir_npu", options=dict(options))
        say("compiling")
        started = time.perf_counter()
        with collect() as reports:
            actual = compiled(*inputs)
        compile_seconds = time.perf_counter() - started
        say(f"compiled in {compile_seconds:.1f} s")
        say("timing eager and ours in turn")
        eager, ours = time_in_turn(lambda: model(*inputs), lambda: compiled(*inputs), seconds)
    tones: tuple[Tone, ...] = ()
    if network is zoo.CREPE:
        estimates = crepe.pitch(actual).tolist()
        tones = tuple(Tone(true, estimate) for true, estimate in zip(zoo.TONES, estimates))
    difference = compare(model, expected, actual)
    placement = Explanation(tuple(reports), breaks=(), result=actual)
    return Trial(network, placement, difference, compile_seconds, eager, ours, tones)


def time_in_turn(
    first: Callable[[], object], second: Callable[[], object], seconds: float
) -> tuple[Times, Times]:
    """Calls both by turns, so that whatever else the machine does hits both alike."""
    first(), second()
    samples: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while len(samples[0]) < MIN_ROUNDS or (
        len(samples[0]) < MAX_ROUNDS and time.perf_counter() < end
    ):
        for call, taken in zip((first, second), samples):
            started = time.perf_counter()
            call()
            taken.append(1e3 * (time.perf_counter() - started))
    return tuple(Times(min(s), statistics.median(s)) for s in samples)
