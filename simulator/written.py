"""Which bytes of the on-chip memories hold something."""

from __future__ import annotations

from math import prod

import numpy as np

from mlir_npu.dialect.attributes import DRAM
from mlir_npu.simulator.buffers import Buffer, Memory


class Written:
    """What moves and compute have written. What is written once stays so."""

    def __init__(self):
        self._marks: dict[Memory, np.ndarray] = {}
        self._whole: set[tuple] = set()  # boxes known to be written, as most come many times

    def write(self, buffer: Buffer) -> None:
        if buffer.space == DRAM or _key(buffer) in self._whole:
            return
        self._whole.add(_key(buffer))
        self._of(buffer)[...] = True

    def missing(self, buffer: Buffer) -> int:
        """How many bytes of `buffer` nothing has written."""
        if buffer.space == DRAM or _key(buffer) in self._whole:
            return 0
        marks = self._of(buffer)
        found = prod(marks.shape) - int(np.count_nonzero(marks))
        if not found:
            self._whole.add(_key(buffer))
        return found

    def _of(self, buffer: Buffer) -> np.ndarray:
        """The mark of every byte of the elements, as a view."""
        if 0 in buffer.shape:
            return np.empty((0,), np.bool_)
        if buffer.memory not in self._marks:
            self._marks[buffer.memory] = np.zeros(buffer.memory.bytes, np.bool_)
        marks = self._marks[buffer.memory]
        shape, strides = (*buffer.shape, buffer.dtype.itemsize), (*buffer.strides, 1)
        return np.ndarray(shape, np.bool_, marks, buffer.offset, strides)


def _key(buffer: Buffer) -> tuple:
    return buffer.memory, buffer.offset, buffer.shape, buffer.strides, buffer.dtype
