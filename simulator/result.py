"""What came of a timing run: cycles, use of units, traffic, the roofline and what is lost to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from mlir_npu.dialect.attributes import DRAM
from mlir_npu.dialect.target import Target
from mlir_npu.simulator.costs import DMA_IN, DMA_OUT, MATRIX, UNITS, VECTOR
from mlir_npu.simulator.events import FIRST, LAST, Counts, Event
from mlir_npu.simulator.occupancy import Curve
from mlir_npu.simulator.traffic import READ, WRITTEN, Traffic

DRAM_DIRECTIONS = {DMA_IN: READ, DMA_OUT: WRITTEN}


@dataclass(frozen=True)
class KernelRun:
    """One run of one kernel.

    kind, shape, tile: for people; occupancy: curve of live bytes by memory, over cycles.
    """

    name: str
    kind: str
    shape: str
    tile: str
    target: Target
    cycles: int
    events: tuple[Event, ...]
    counts: Counts
    traffic: Traffic
    channels: dict[str, int]
    occupancy: dict[str, Curve]

    @cached_property
    def busy(self) -> Counter:
        """Busy cycles by unit, of all its channels together."""
        total: Counter = Counter()
        for event in self.events:
            total[event.unit] += event.end - event.start
        return total

    def utilisation(self, unit: str) -> float:
        return self.busy[unit] / (self.cycles * self.channels[unit]) if self.cycles else 0.0

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Cycles that each unit needs at the least: no fill, no edges, every byte moved once."""
        rate = self.target.dma.bytes_per_cycle
        moves = {
            unit: self.traffic.distinct(direction) / (rate * self.channels[unit])
            for unit, direction in DRAM_DIRECTIONS.items()
        }
        return {unit: self.counts.ideal[unit] for unit in (MATRIX, VECTOR)} | moves

    @property
    def bounded_by(self) -> str:
        return max(UNITS, key=self.bounds.__getitem__)

    @property
    def bound(self) -> float:
        """The roofline: no program for this kernel takes fewer cycles on this machine."""
        return self.bounds[self.bounded_by]

    @property
    def share(self) -> float:
        """Share of the roofline that is reached, 1 for a kernel that does nothing."""
        return self.bound / self.cycles if self.cycles else 1.0

    @property
    def macs(self) -> int:
        return self.counts.macs

    @property
    def dram_bytes(self) -> int:
        return self.traffic.of(DRAM, READ) + self.traffic.of(DRAM, WRITTEN)

    @property
    def intensity(self) -> float:
        """Multiply-accumulates per byte of dram that is moved."""
        return self.macs / self.dram_bytes if self.dram_bytes else 0.0

    def peak(self, space: str) -> int:
        """Most bytes of live buffers at a time."""
        return max((level for _, level in self.occupancy[space]), default=0)

    @property
    def busiest(self) -> str:
        """The unit that is busy for the largest part of the time."""
        return max(UNITS, key=lambda unit: (self.utilisation(unit), unit == self.bounded_by))

    def losses(self, unit: str | None = None) -> dict[str, float]:
        """Cycles above what `unit` needs at the least, by cause, largest first.

        They add up to cycles - bounds[unit]; unit: by default the one that bounds the kernel.
        """
        unit = unit or self.bounded_by
        found = self._busy_losses(unit)
        for (when, other), cycles in self.counts.idle[unit].items():
            found[_idle_text(when, unit, other)] += cycles / self.channels[unit]
        return {cause: cycles for cause, cycles in found.most_common() if round(cycles) > 0}

    def _busy_losses(self, unit: str) -> Counter:
        busy, counts = self.busy[unit] / self.channels[unit], self.counts
        found: Counter = Counter()
        if unit == MATRIX:
            found["pipeline fill"] = counts.fill
            found["clearing accumulators"] = busy - counts.contraction
            found[f"edge of array: {self._edge_text()}"] = (
                counts.contraction - counts.fill - counts.ideal[MATRIX]
            )
        elif unit == VECTOR:
            found["part of the lanes"] = busy - counts.ideal[VECTOR]
        else:
            dma, direction = self.target.dma, DRAM_DIRECTIONS[unit]
            found["setup of moves"] = counts.moves[unit] * dma.setup_cycles / self.channels[unit]
            again = self.traffic.of(DRAM, direction) - self.traffic.distinct(direction)
            found["bytes moved again"] = again / (dma.bytes_per_cycle * self.channels[unit])
            found["part of the bus"] = busy - self.bounds[unit] - sum(found.values())
        return found

    def _edge_text(self) -> str:
        """Rows and columns of the matrix unit that do something, of those ops that waste most."""
        (rows, columns), _ = max(
            self.counts.edges.items(),
            key=lambda item: item[1] * (1 - item[0][0][0] * item[0][1][0] / _cells(item[0])),
            default=(((0, 1), (0, 1)), 0),
        )
        parts = [
            f"{used:.3g} of {there} {name}"
            for (used, there), name in ((rows, "rows"), (columns, "columns"))
            if used < there
        ]
        return " and ".join(parts) + " used"


def _cells(edges) -> int:
    (_, rows), (_, columns) = edges
    return rows * columns


NAMES = {MATRIX: "the matrix unit", VECTOR: "the vector unit", DMA_IN: "dma in", DMA_OUT: "dma out"}


def _idle_text(when: str, unit: str, other: str) -> str:
    if (when, other) == (FIRST, DMA_IN):
        return "first load"
    if (when, other) == (LAST, DMA_OUT):
        return "last store"
    before = {FIRST: "start: ", LAST: "end: "}.get(when, "")
    return f"{before}waits for {'another channel' if unit == other else NAMES[other]}"


@dataclass(frozen=True)
class ModuleRun:
    """The kernels of a module in the order of calls from @main, and from @prepare.

    Kernels of one name share one KernelRun. @prepare runs only when weights change and does not
    count.
    """

    target: Target
    calls: tuple[KernelRun, ...]
    preparation: tuple[KernelRun, ...] = ()

    @property
    def cycles(self) -> int:
        return sum(run.cycles for run in self.calls)

    @property
    def bound(self) -> float:
        return sum(run.bound for run in self.calls)

    @property
    def macs(self) -> int:
        return sum(run.macs for run in self.calls)

    @property
    def share(self) -> float:
        return self.bound / self.cycles if self.cycles else 1.0

    def utilisation(self, unit: str) -> float:
        busy = sum(run.busy[unit] / run.channels[unit] for run in self.calls)
        return busy / self.cycles if self.cycles else 0.0

    def bytes(self, space: str, direction: str) -> int:
        return sum(run.traffic.of(space, direction) for run in self.calls)
