"""The steps of a block, executed with an end: every fault has its op, and no loop runs for ever."""

from __future__ import annotations

from collections.abc import Callable

from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.errors import SimulationError, fault

Frame = list
Step = Callable[[Frame], None]
MOST_OPS = 10**8  # of one run; far above what compiled kernels have, minutes of simulation


class Steps:
    """What the ops of a block do, in order."""

    def __init__(self):
        self._ops: list[ir.Operation] = []
        self._steps: list[Step] = []

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, op: ir.Operation, step: Step) -> None:
        self._ops.append(op)
        self._steps.append(step)

    def run(self, frame: Frame) -> None:
        """Raises SimulationError."""
        try:
            for step in self._steps:
                step(frame)
        except SimulationError:
            raise
        except Exception as error:
            raise fault(self._ops[self._steps.index(step)], error) from error


class Budget:
    """How many ops the loops of a run may still execute."""

    def __init__(self):
        self._left = MOST_OPS

    def spend(self, loop: ir.Operation, trips: int, steps: Steps) -> None:
        """Called before a loop runs. Raises SimulationError."""
        self._left -= trips * (1 + len(steps))
        if self._left < 0:
            raise SimulationError(
                loop,
                f"runs {trips:,} times {len(steps)} ops, which makes more than the {MOST_OPS:,} "
                "that are executed of one kernel",
            )
