"""Which earlier operations an operation has to come after, and races with moves in flight.

Two operations conflict if they share bytes and one of them writes. The machine makes the later one
wait, with one exception: it does not know when a move is done. Compute that conflicts with a move
whose token has not been waited for is therefore a fault, whether or not it happens to come late
enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.buffers import Buffer, overlap
from mlir_npu.simulator.errors import SimulationError, place


@dataclass(eq=False)
class Token:
    """A move in flight. op: its dma_start, None for the token of no move.

    complete: known to be, by a wait or a barrier; waited: by a wait.
    """

    op: ir.Operation | None
    source: Buffer | None = None
    target: Buffer | None = None
    complete: bool = False
    waited: bool = False
    end: int = 0


@dataclass(frozen=True, eq=False)
class Access:
    """An operation on a buffer. end, unit: when and where it is done; token: if it is a move."""

    buffer: Buffer
    writes: bool
    unit: str = ""
    end: int = 0
    token: Token | None = None

    @property
    def in_flight(self) -> bool:
        return self.token is not None and not self.token.complete


def compute_accesses(buffers: Sequence[Buffer]) -> list[tuple[Buffer, bool]]:
    """(buffer, whether it is written) of a compute op; the last operand is written."""
    *inputs, output = buffers
    return [*((buffer, False) for buffer in inputs), (output, True)]


def check_written(op: ir.Operation, buffer: Buffer) -> None:
    """Raises SimulationError if `op` must not write `buffer`."""
    if buffer.memory.constant:
        raise SimulationError(op, f"writes {buffer}, which is {buffer.memory.constant}")


def check_overlap(op: ir.Operation, buffers: Sequence[Buffer], in_place: Sequence[bool]) -> None:
    """Raises SimulationError if the last buffer, which `op` writes, shares bytes with another.

    in_place: for each of the others, whether it may be the very same box.
    """
    *inputs, output = buffers
    for buffer, allowed in zip(inputs, in_place):
        same = (buffer.offset, buffer.strides) == (output.offset, output.strides)
        if overlap(buffer, output) and not (allowed and same):
            raise SimulationError(op, f"reads {buffer}, which overlaps with {output}, its output")


def may_be_in_place(op: ir.Operation) -> list[bool]:
    """For each input of a compute op, whether it may be the output too: element by element."""
    if op.name not in ("npu.eltwise", "npu.drain"):
        return [False] * (len(op.operands) - 1)
    *inputs, output = [ir.AffineMapAttr(map_).value for map_ in op.attributes["indexing_maps"]]
    return [map_ == output for map_ in inputs]


class Hazards:
    """The operations that may still run, by memory."""

    def __init__(self):
        self._accesses: dict[object, list[Access]] = {}
        self._tokens: list[Token] = []

    def conflicts(self, buffer: Buffer, writes: bool) -> Iterator[Access]:
        """Earlier operations that must be done before `buffer` is touched."""
        for access in self._accesses.get(buffer.memory, ()):
            if (writes or access.writes) and overlap(access.buffer, buffer):
                yield access

    def check_race(self, op: ir.Operation, buffer: Buffer, access: Access) -> None:
        """`op` computes on `buffer`; raises if `access` is a move that nobody has waited for."""
        if not access.in_flight:
            return
        move = access.token.op
        what = "writes" if access.writes else "reads"
        raise SimulationError(
            op,
            f"race: touches {buffer} while the move of {place(move)} {what} {access.buffer}; "
            "wait for its token first",
        )

    def add(self, access: Access, now: int = 0) -> None:
        """Remember an operation; forget what is done at `now` or comes before it anyway."""
        buffer = access.buffer
        kept = [
            old
            for old in self._accesses.get(buffer.memory, ())
            if old.in_flight or (old.end > now and not _is_covered(old, access))
        ]
        self._accesses[buffer.memory] = [*kept, access]

    def start(self, token: Token) -> None:
        self._tokens.append(token)

    def wait(self, op: ir.Operation, token: Token) -> None:
        """Mark a token as waited for."""
        if token.op is None:
            return
        if token.waited:
            raise SimulationError(op, f"waits a second time for the move of {place(token.op)}")
        token.waited = token.complete = True
        self._tokens.remove(token)

    def barrier(self) -> list[Token]:
        """Every move so far is complete; its token has still to be waited for."""
        pending = [token for token in self._tokens if not token.complete]
        for token in pending:
            token.complete = True
        return pending

    def finish(self) -> None:
        """The function ends: every move must have been waited for."""
        if self._tokens:
            token = self._tokens[0]
            raise SimulationError(
                token.op,
                f"the move from {token.source} to {token.target} is never waited for "
                f"({len(self._tokens)} such moves)",
            )


def _is_covered(old: Access, new: Access) -> bool:
    """Whether whatever conflicts with `old` also conflicts with `new`, which comes after it."""
    a, b = old.buffer, new.buffer
    return new.writes and b.low <= a.low and a.high <= b.high and b.bytes == b.high - b.low
