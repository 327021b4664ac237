"""Temporary memory for compiled code: a buffer per call in flight, kept, shared by all regions."""

from __future__ import annotations

import torch

ALIGNMENT = 64  # bytes; what torch's CPU allocator guarantees and one cache line


def align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class Arena:
    """A growing buffer. Contents do not survive `reserve`."""

    __slots__ = ("_buffer", "address", "size")

    def __init__(self) -> None:
        self._buffer: torch.Tensor | None = None
        self.address = 0
        self.size = 0

    def reserve(self, size: int) -> int:
        """Address of at least `size` bytes, aligned to 64."""
        if size > self.size:
            self._buffer = None  # free before allocating: the old contents are dead
            self._buffer = torch.empty(align(size), dtype=torch.uint8, device="cpu")
            self.size = self._buffer.numel()
            self.address = self._buffer.data_ptr()
        return self.address


class ArenaPool:
    """Arenas that no call is using, last returned first: a single-threaded program owns exactly
    one.

    A pool instead of one arena per thread also serves a thread that calls a region while it is
    inside another one (a finalizer, a hook). list.append and list.pop are atomic.
    """

    def __init__(self) -> None:
        self._free: list[Arena] = []

    def take(self) -> Arena:
        try:
            return self._free.pop()
        except IndexError:
            return Arena()

    def give(self, arena: Arena) -> None:
        self._free.append(arena)

    def clear(self) -> None:
        """Return the memory that no call is using to the system."""
        self._free.clear()


POOL = ArenaPool()
