"""Bytes of live buffers on chip over time, from what ops really use.

A buffer is live from the start of the op that overwrites it to the end of the last one that uses
what was written.
"""

from __future__ import annotations

from collections import defaultdict

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target
from mlir_npu.simulator.buffers import Buffer, Memory
from mlir_npu.simulator.errors import SimulationError

Curve = list[tuple[int, int]]


class Occupancy:
    """Lives of the buffers of one run. endless: memories have no end."""

    def __init__(self, target: Target, endless: bool = False):
        self._sizes = {SRAM: target.sram.bytes, ACC: target.acc.bytes}
        self._name = target.name
        self._endless = endless
        self._lives: dict[str, dict[tuple[Memory, int, int], list[int]]] = {SRAM: {}, ACC: {}}
        self._changes: dict[str, dict[int, int]] = {SRAM: defaultdict(int), ACC: defaultdict(int)}
        self._ends: dict[tuple[str, Memory], list[int]] = {}

    def touch(self, op: ir.Operation, buffer: Buffer, start: int, end: int, overwrites: bool):
        """`op` uses a buffer; `overwrites`: without needing what was in it."""
        if buffer.space == DRAM:
            return
        self._check_size(op, buffer)
        lives = self._lives[buffer.space]
        key = (buffer.memory, buffer.base, self._whole_bytes(buffer))
        life = lives.get(key)
        if life is None or (overwrites and buffer.bytes == key[2]):
            if life is not None:
                self._close(buffer.space, key, life)
            lives[key] = [start, end]
        else:
            life[1] = max(life[1], end)

    def curve(self, space: str) -> Curve:
        """(cycle, bytes from then on) of every change; ends with 0."""
        for key, life in self._lives[space].items():
            self._close(space, key, life)
        self._lives[space] = {}
        points, level = [], 0
        for time, change in sorted(self._changes[space].items()):
            level += change
            if change:
                points.append((time, level))
        return points

    def _close(self, space: str, key, life: list[int]) -> None:
        self._changes[space][life[0]] += key[2]
        self._changes[space][life[1]] -= key[2]

    @staticmethod
    def _whole_bytes(buffer: Buffer) -> int:
        """Bytes of the buffer that this is a box of."""
        if buffer.value is None:
            return buffer.bytes
        type_ = ir.MemRefType(buffer.value.type)
        size = buffer.dtype.itemsize
        for extent in type_.shape:
            size *= extent
        return size

    def _check_size(self, op: ir.Operation, buffer: Buffer) -> None:
        """The buffers of one memory lie within its size of each other."""
        key = (buffer.space, buffer.memory)
        ends = self._ends.setdefault(key, [buffer.low, buffer.high])
        ends[0], ends[1] = min(ends[0], buffer.low), max(ends[1], buffer.high)
        used, size = ends[1] - ends[0], self._sizes[buffer.space]
        if used > size and not self._endless:
            raise SimulationError(
                op,
                f"{buffer.space} of '{self._name}' has {size} bytes, but {buffer} makes it "
                f"{used}; use smaller tiles",
            )
