"""Where buffers may lie: within the memories of the target, at multiples of their alignment."""

from __future__ import annotations

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target
from mlir_npu.passes.choose_tiles import is_untiled
from mlir_npu.simulator.buffers import Buffer
from mlir_npu.simulator.errors import SimulationError

PLAN, ACC_START = "npu.memory", "acc_start"


class Placement:
    """The on-chip memories of one kernel.

    After `allocate` they are parts of one argument: sram comes first, acc starts at the byte that
    the kernel's plan says.
    """

    def __init__(self, kernel: ir.Operation, target: Target):
        self._target = target
        self._endless = is_untiled(kernel)
        self._acc_start = _acc_start(kernel)

    def check(self, op: ir.Operation, buffer: Buffer) -> None:
        """Raises SimulationError if `buffer`, which `op` makes, cannot be where it is."""
        if buffer.space == DRAM:
            return
        memory = {SRAM: self._target.sram, ACC: self._target.acc}[buffer.space]
        start, end = self._part(buffer.space, memory.bytes)
        first, last = buffer.low - start, buffer.high - start
        if first % memory.alignment:
            raise SimulationError(
                op,
                f"{buffer} starts at byte {first} of {buffer.space}, which is no multiple of its "
                f"alignment, {memory.alignment}",
            )
        if first < 0 or (end is not None and buffer.high > end):
            raise SimulationError(
                op,
                f"{buffer} takes the bytes {first} to {last} of {buffer.space}, which has "
                f"{memory.bytes} bytes in '{self._target.name}'{self._part_text(buffer.space)}",
            )

    def _part(self, space: str, size: int) -> tuple[int, int | None]:
        """First byte and end of a memory in the argument; the end is None if there is none."""
        begin = self._acc_start or 0
        if self._endless:
            return (0 if space == SRAM else begin), None
        if self._acc_start is None:
            return 0, size if space == SRAM else self._target.sram.bytes + size
        return (0, min(size, begin)) if space == SRAM else (begin, begin + size)

    def _part_text(self, space: str) -> str:
        if self._acc_start is None:
            return ""
        return f"; acc starts at byte {self._acc_start} of the kernel's memory"


def _acc_start(kernel: ir.Operation) -> int | None:
    if PLAN not in kernel.attributes:
        return None
    plan = ir.DictAttr(kernel.attributes[PLAN])
    return ir.IntegerAttr(plan[ACC_START]).value if ACC_START in plan else None
