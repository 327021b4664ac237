"""What a run of a kernel leaves behind: its events, and sums over them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir_npu.dialect.attributes import DRAM
from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.buffers import Buffer
from mlir_npu.simulator.costs import DMA_IN, DMA_OUT, Cost

FIRST, LAST, BETWEEN = "first", "last", "between"


@dataclass(frozen=True)
class Event:
    """An op on one channel of a unit, from cycle `start` to `end`; detail for people.

    memory: of the dram side of a move.
    """

    unit: str
    channel: int
    start: int
    end: int
    name: str
    detail: str
    bytes: int = 0
    memory: str = ""


@dataclass
class Counts:
    """Sums over the ops of a run, by unit where a unit has more than one kind.

    ideal: cycles if all of the unit took part; fill: pipeline fills of the matrix unit;
    contraction: its cycles of conv2d and products; edges: those cycles by (used, existing) rows and
    columns; idle: cycles of all channels by (when, whom the unit waited for).
    """

    macs: int = 0
    ideal: Counter = field(default_factory=Counter)
    fill: int = 0
    contraction: int = 0
    edges: Counter = field(default_factory=Counter)
    moves: Counter = field(default_factory=Counter)
    idle: defaultdict = field(default_factory=lambda: defaultdict(Counter))


def event_of(
    op: ir.Operation,
    unit: str,
    channel: int,
    begin: int,
    end: int,
    touched: Sequence[tuple[Buffer, bool]],
    cost: Cost | None,
) -> Event:
    """touched: the op's buffers, each with whether it is written; cost: None of a move."""
    name = op.name.removeprefix("npu.")
    if cost is not None:
        return Event(unit, channel, begin, end, name, cost.shape)
    (source, _), (target, _) = touched
    remote = target if target.space == DRAM else source
    name = {DMA_IN: "load", DMA_OUT: "store"}[unit]
    detail = f"{remote.memory.name} {'x'.join(map(str, remote.shape))}"
    return Event(unit, channel, begin, end, name, detail, source.bytes, remote.memory.name)
