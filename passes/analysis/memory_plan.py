"""Offsets for buffers that share one block of memory.

Pure Python, no IR: a request says how many bytes are needed and during which steps, a plan gives
each request an offset. `plan` places the largest requests first, each in the tightest gap that is
free for its whole life (the "greedy by size" planner of TensorFlow Lite, arXiv 2001.03288).
`verify` shares no code with it, so that a fault in the planner cannot hide itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

LARGEST_SHOWN = 3


@dataclass(frozen=True)
class Request:
    """`bytes` of memory, live from step `first` to step `last`, both included."""

    name: str
    bytes: int
    first: int
    last: int

    def __post_init__(self):
        if self.bytes <= 0:
            raise ValueError(f"request '{self.name}' asks for {self.bytes} bytes; must be positive")
        if self.first > self.last:
            raise ValueError(f"request '{self.name}' ends at {self.last}, before {self.first}")

    def meets(self, other: "Request") -> bool:
        """Whether both are live at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Plan:
    """Offset of every request by name, and the bytes that hold them all."""

    offsets: Mapping[str, int]
    bytes: int


class Overflow(Exception):
    """The requests do not fit: bytes needed and available, and the largest requests at the peak."""

    def __init__(self, needed: int, available: int, largest: Sequence[Request]):
        self.needed, self.available, self.largest = needed, available, tuple(largest)
        shown = ", ".join(f"{r.name} ({r.bytes} bytes)" for r in self.largest)
        super().__init__(f"needs {needed} of {available} bytes; largest buffers: {shown}")


def align(offset: int, alignment: int) -> int:
    """The first multiple of `alignment` that is not below `offset`."""
    return -(-offset // alignment) * alignment


def plan(requests: Iterable[Request], alignment: int, capacity: int | None = None) -> Plan:
    """Offsets, multiples of `alignment`; raises Overflow when they end above `capacity` bytes."""
    requests = tuple(requests)
    _require_distinct_names(requests)
    placed: list[tuple[int, Request]] = []
    for request in sorted(requests, key=lambda r: (-r.bytes, r.first, r.name)):
        placed.append((_tightest_gap(request, placed, alignment), request))
    end = max((offset + request.bytes for offset, request in placed), default=0)
    if capacity is not None and end > capacity:
        raise Overflow(end, capacity, _largest_at_peak(requests))
    return Plan({request.name: offset for offset, request in placed}, end)


def _require_distinct_names(requests: Sequence[Request]) -> None:
    names = [request.name for request in requests]
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate request names in {sorted(names)}")


def _tightest_gap(request: Request, placed: list[tuple[int, Request]], alignment: int) -> int:
    """Offset of the smallest free gap that holds `request`, else the end of what it must avoid."""
    taken = sorted((o, o + r.bytes) for o, r in placed if r.meets(request))
    best, best_slack, end = None, None, 0
    for start, stop in taken:
        offset = align(end, alignment)
        slack = start - offset - request.bytes
        if slack >= 0 and (best_slack is None or slack < best_slack):
            best, best_slack = offset, slack
        end = max(end, stop)
    return align(end, alignment) if best is None else best


def _largest_at_peak(requests: Sequence[Request]) -> list[Request]:
    peak = max((r.first for r in requests), key=lambda step: _live_bytes(requests, step))
    live = [r for r in requests if r.first <= peak <= r.last]
    return sorted(live, key=lambda r: -r.bytes)[:LARGEST_SHOWN]


def _live_bytes(requests: Sequence[Request], step: int) -> int:
    return sum(r.bytes for r in requests if r.first <= step <= r.last)


def peak_bytes(requests: Iterable[Request]) -> int:
    """Bytes live at the busiest step: no plan can be smaller."""
    requests = tuple(requests)
    return max((_live_bytes(requests, r.first) for r in requests), default=0)


def verify(
    requests: Iterable[Request], offsets: Mapping[str, int], alignment: int, capacity: int
) -> list[str]:
    """Every fault of a plan, as sentences; empty when it is right. Compares all pairs."""
    requests = tuple(requests)
    faults = []
    for index, a in enumerate(requests):
        if a.name not in offsets:
            faults.append(f"'{a.name}' has no offset")
            continue
        start, stop = offsets[a.name], offsets[a.name] + a.bytes
        if start < 0 or stop > capacity:
            faults.append(f"'{a.name}' occupies [{start}, {stop}) of {capacity} bytes")
        if start % alignment:
            faults.append(f"'{a.name}' at {start} is not aligned to {alignment} bytes")
        for b in requests[:index]:
            if b.name not in offsets or a.last < b.first or b.last < a.first:
                continue
            if start < offsets[b.name] + b.bytes and offsets[b.name] < stop:
                faults.append(f"'{a.name}' and '{b.name}' overlap while both are live")
    return faults
