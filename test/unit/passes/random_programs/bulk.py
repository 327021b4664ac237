"""Make random programs in bulk, run them, and tell how to make again those that fail."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target
from random_programs.batch import Program, TurnedAway, chosen_schedule, shape_of
from random_programs.kernels import LARGE, MEDIUM, SMALL, Builder, Sizes, random_kernel
from random_programs.schedules import random_schedule

SEED = os.environ.get("MLIR_NPU_TEST_SEED", "1")
MODULE = 25  # programs of one module
UNTILED = "untiled"

Run = Callable[[Program, ir.Module, int], None]  # runs @main_<number> of a module


@dataclass(frozen=True)
class Case:
    """A random kernel for a target, and the random numbers that its schedule is drawn from."""

    number: int
    target: Target
    build: Builder
    rng: random.Random

    @classmethod
    def of(cls, number: int, target: Target, sizes: Sizes = SMALL) -> Case:
        rng = random.Random(f"{SEED}:{number}")
        if rng.random() < 0.25:  # tiles that fill memories
            sizes = MEDIUM if target.sram.bytes < 1 << 18 else LARGE
        return cls(number, target, random_kernel(rng, sizes), rng)

    def program(self, mode: str, schedule: str) -> Program:
        made = f"{self.build.func.__name__}(*{self.build.args}, **{self.build.keywords})"
        name = (
            f"MLIR_NPU_TEST_SEED={SEED}, case {self.number} on {self.target.name}: {made}, "
            f"schedule {schedule}"
        )
        return Program(name, mode, self.build(schedule=schedule), self.number)


@dataclass
class Bulk:
    """Programs by mode, and what became of them."""

    programs: dict[str, list[Program]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter = field(default_factory=Counter)
    turned_away: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add_given(self, case: Case) -> None:
        """A random schedule, and the same one serial where it is not."""
        schedule = random_schedule(case.rng, shape_of(case.build(), case.target), case.target)
        if schedule is None:
            return
        self._add(case.program("random", str(schedule)))
        if schedule.buffers > 1:
            self._add(case.program("random serial", str(schedule.serial())))

    def add_chosen(self, case: Case, mode: str) -> None:
        """The schedule that choose-tiles decides in a mode."""
        try:
            schedule = chosen_schedule(case.build(), case.target, mode)
        except TurnedAway as error:
            self.turned_away.append(f"{case.program(mode, '').name}{error}")
            return
        self._add(case.program(mode, schedule))

    def _add(self, program: Program) -> None:
        self.programs[program.mode].append(program)

    def run(self, compile_all: Callable[[Sequence[Program]], ir.Module], run: Run) -> None:
        """Compile the programs, some at a time, and run each."""
        for programs in self.programs.values():
            for start in range(0, len(programs), MODULE):
                self._run_module(programs[start : start + MODULE], compile_all, run)

    def _run_module(self, programs: list[Program], compile_all, run: Run) -> None:
        try:
            module = compile_all(programs)
        except Exception:  # find out whose fault it is
            for program in programs:
                self._try(program, lambda p=program: run(p, compile_all([p]), 0))
            return
        for number, program in enumerate(programs):
            self._try(program, partial(run, program, module, number))

    def _try(self, program: Program, run: Callable[[], None]) -> None:
        self.counts[program.mode] += 1
        try:
            run()
        except Exception as error:
            self.failures.append(f"{program.name}\n  {type(error).__name__}: {error}")

    def check(self, may_turn_away: bool) -> None:
        shown = "\n".join(self.failures[:5])
        assert not self.failures, f"{len(self.failures)} programs fail:\n{shown}"
        assert may_turn_away or not self.turned_away, self.turned_away[0]
        for message in self.turned_away:
            assert "does not fit: the smallest tile needs" in message, message

    def counted(self, where: str) -> dict[str, int]:
        """Totals for the end of a test run."""
        what = f"random programs of seed {SEED} {where}"
        return {what: self.counts.total(), f"{what} turned away": len(self.turned_away)}
