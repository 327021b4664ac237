"""Bytes that a run reads and writes, by memory, and how many of those of dram are distinct."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mlir_npu.dialect.attributes import DRAM
from mlir_npu.simulator.buffers import Buffer, Memory

READ, WRITTEN = "read", "written"


class Traffic:
    """Counts of one run. A compute op reads every operand once."""

    def __init__(self):
        self.bytes: Counter[tuple[str, str]] = Counter()
        self._marks: dict[tuple[Memory, str], np.ndarray] = {}
        self._items: dict[tuple[Memory, str], int] = {}

    def move(self, source: Buffer, target: Buffer) -> None:
        """The side in dram is as large as the source: padding is made on chip."""
        self._count(source, READ, source.bytes)
        self._count(target, WRITTEN, source.bytes if target.space == DRAM else target.bytes)

    def compute(self, buffer: Buffer, writes: bool) -> None:
        self._count(buffer, WRITTEN if writes else READ, buffer.bytes)

    def distinct(self, direction: str) -> int:
        """Bytes of dram that were read, or written, each counted once."""
        return sum(
            int(np.count_nonzero(marks)) * self._items[key]
            for key, marks in self._marks.items()
            if key[1] == direction
        )

    def of(self, space: str, direction: str) -> int:
        return self.bytes[space, direction]

    def _count(self, buffer: Buffer, direction: str, size: int) -> None:
        self.bytes[buffer.space, direction] += size
        if buffer.space == DRAM and buffer.bytes:
            self._mark(buffer, direction)

    def _mark(self, buffer: Buffer, direction: str) -> None:
        """Mark the first byte of every element."""
        key = (buffer.memory, direction)
        if key not in self._marks:
            self._marks[key] = np.zeros(buffer.memory.bytes, np.bool_)
            self._items[key] = buffer.dtype.itemsize
        marks = self._marks[key]
        np.ndarray(buffer.shape, np.bool_, marks, buffer.offset, buffer.strides)[...] = True
