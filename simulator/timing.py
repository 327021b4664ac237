"""Runs a kernel for its time: ops in program order on units that work at the same time.

The machine is that of `passes/analysis/unit_cycles.py`. Control issues at no cost and only a wait
holds it. An op starts when it has been issued, its unit is free and everything that it conflicts
with is done (`hazards`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target
from mlir_npu.passes.analysis.unit_cycles import move_cycles
from mlir_npu.passes.choose_tiles import is_untiled
from mlir_npu.passes.kernels.liveness import OVERWRITING
from mlir_npu.passes.kernels.walk import integers
from mlir_npu.simulator.buffers import Buffer, Memory
from mlir_npu.simulator.costs import DMA_IN, DMA_OUT, UNITS, Cost, compute_cost, move_units
from mlir_npu.simulator.errors import SimulationError
from mlir_npu.simulator.events import BETWEEN, FIRST, LAST, Counts, Event, event_of
from mlir_npu.simulator.hazards import (
    Access,
    Hazards,
    Token,
    check_overlap,
    check_written,
    compute_accesses,
    may_be_in_place,
)
from mlir_npu.simulator.moves import landing_of, rank_of
from mlir_npu.simulator.occupancy import Occupancy
from mlir_npu.simulator.placement import Placement
from mlir_npu.simulator.traffic import Traffic
from mlir_npu.simulator.written import Written


class TimingMachine:
    """Executes the moves and compute of a kernel in time only; buffers have no data."""

    def __init__(self, kernel: ir.Operation, target: Target):
        self.target = target
        self.events: list[Event] = []
        self.counts = Counts()
        self.traffic = Traffic()
        self.occupancy = Occupancy(target, is_untiled(kernel))
        self._placement = Placement(kernel, target)
        self._written = Written()
        self.channels = dict.fromkeys(UNITS, 1)
        self.channels[DMA_IN] = self.channels[DMA_OUT] = target.dma.channels
        self._free = {unit: [0] * count for unit, count in self.channels.items()}
        self._worked: set[tuple[str, int]] = set()
        self._now, self._held_by = 0, ""
        self._hazards = Hazards()
        self._constants: dict[str, Memory] = {}

    def allocate(self, op: ir.Operation) -> Buffer:
        value = op.results[0]
        size = Buffer.whole(Memory("", 0), value.type).bytes
        if op.name == "memref.alloc":
            return Buffer.whole(Memory("buffer", size), value.type, 0, value)
        name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        memory = self._constants.setdefault(name, Memory(name, size, constant="a constant"))
        return Buffer.whole(memory, value.type)

    def check_place(self, op: ir.Operation, buffer: Buffer) -> None:
        self._placement.check(op, buffer)

    def move(self, op: ir.Operation) -> Callable[[Buffer, Buffer, Sequence[int]], Token]:
        order, units, dma = integers(op, "permutation"), move_units(op), self.target.dma

        def start(source: Buffer, target: Buffer, low: Sequence[int]) -> Token:
            landing = landing_of(op, source, target, low, order)
            self._check_rank(op, source.permuted(order), landing)
            check_overlap(op, (source, target), (False,))
            touched = [(source, False), (target, True)]
            self._check_contents(op, touched)
            begin, end = self._execute(op, units, move_cycles(source.bytes, dma), touched)
            token = Token(op, source, target, end=end)
            self._hazards.start(token)
            self._record(op, touched, begin, end, units[-1], token, overwrites=True)
            self.traffic.move(source, target)
            for unit in units:
                self.counts.moves[unit] += 1
            return token

        return start

    def no_move(self) -> Token:
        return Token(None)

    def wait(self, op: ir.Operation) -> Callable[[Sequence[Token]], None]:
        def wait(tokens: Sequence[Token]) -> None:
            for token in tokens:
                self._hazards.wait(op, token)
                if token.end > self._now:
                    self._now, self._held_by = token.end, move_units(token.op)[-1]

        return wait

    def compute(self, op: ir.Operation) -> Callable[[Sequence[Buffer]], None]:
        if op.name == "npu.barrier":
            return self._barrier
        cost, overwrites = compute_cost(op, self.target), op.name in OVERWRITING
        in_place = may_be_in_place(op)

        def compute(buffers: Sequence[Buffer]) -> None:
            check_overlap(op, buffers, in_place)
            touched = compute_accesses(buffers)
            self._check_contents(op, touched if overwrites else [*touched, (buffers[-1], False)])
            begin, end = self._execute(op, (cost.unit,), cost.cycles, touched, cost)
            self._record(op, touched, begin, end, cost.unit, None, overwrites)
            for buffer, writes in touched:
                self.traffic.compute(buffer, writes)
            self._count(cost)

        return compute

    def finish(self) -> int:
        """The kernel ends when every unit has; returns its cycles. Raises SimulationError."""
        self._hazards.finish()
        last = max(self.events, key=lambda event: event.end, default=None)
        if last is None:
            return 0
        for unit, channels in self._free.items():
            for free in channels:
                self.counts.idle[unit][LAST, last.unit] += last.end - free
        return last.end

    def _execute(
        self, op: ir.Operation, units: Sequence[str], cycles: int, touched, cost: Cost | None = None
    ) -> tuple[int, int]:
        """Take the channels of `units` that are free first; returns start and end."""
        channels = [self._first_free(unit) for unit in units]
        ready, cause = self._ready(op, touched, cost is not None)
        begin = max(ready, *(self._free[unit][channel] for unit, channel in channels))
        end = begin + cycles
        useful = cost is None or cost.ideal > 0  # clearing an accumulator is not the first work
        for unit, channel in channels:
            if ready > self._free[unit][channel]:
                when = BETWEEN if (unit, channel) in self._worked else FIRST
                self.counts.idle[unit][when, cause] += begin - self._free[unit][channel]
            if useful:
                self._worked.add((unit, channel))
            self._free[unit][channel] = end
            self.events.append(event_of(op, unit, channel, begin, end, touched, cost))
        return begin, end

    def _first_free(self, unit: str) -> tuple[str, int]:
        free = self._free[unit]
        return unit, min(range(len(free)), key=free.__getitem__)

    def _ready(self, op: ir.Operation, touched, computes: bool) -> tuple[int, str]:
        """When `op` may start but for its unit, and which unit it has waited for."""
        ready, cause = self._now, self._held_by
        for buffer, writes in touched:
            for access in self._hazards.conflicts(buffer, writes):
                if computes:
                    self._hazards.check_race(op, buffer, access)
                if access.end > ready:
                    ready, cause = access.end, access.unit
        return ready, cause

    def _record(self, op, touched, begin, end, unit, token, overwrites: bool) -> None:
        for buffer, writes in touched:
            self._hazards.add(Access(buffer, writes, unit, end, token), self._now)
            self.occupancy.touch(op, buffer, begin, end, writes and overwrites)

    def _check_contents(self, op: ir.Operation, touched) -> None:
        """What is read must have been written; note what is written."""
        for buffer, writes in touched:
            if not writes and (missing := self._written.missing(buffer)):
                raise SimulationError(
                    op, f"reads {buffer}, of which nothing has written {missing} bytes"
                )
        for buffer, writes in touched:
            if writes:
                check_written(op, buffer)
                self._written.write(buffer)

    def _barrier(self, buffers: Sequence[Buffer]) -> None:
        self._hazards.barrier()
        for unit, channels in self._free.items():
            if max(channels) > self._now:
                self._now, self._held_by = max(channels), unit

    def _check_rank(self, op: ir.Operation, source: Buffer, landing: Buffer) -> None:
        rank = rank_of(source, landing)
        if rank > self.target.dma.max_rank:
            raise SimulationError(
                op,
                f"the move from {source} to {landing} has {rank} dimensions, the DMA of "
                f"'{self.target.name}' does at most {self.target.dma.max_rank}",
            )

    def _count(self, cost: Cost) -> None:
        self.counts.macs += cost.macs
        self.counts.ideal[cost.unit] += cost.ideal
        if cost.fill:
            self.counts.fill += cost.fill
            self.counts.contraction += cost.cycles
            self.counts.edges[cost.rows, cost.columns] += cost.cycles - cost.fill
