"""Kernels with all that their blocks need: temporary memory, and what seldom changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mlir_npu.runtime.arena import POOL
from mlir_npu.runtime.kernel import Kernel, SlotBlock
from mlir_npu.runtime.prepared import Prepared


def fill_prepared(slots: Sequence[int], block: SlotBlock, prepared: Prepared) -> None:
    block.tag = 0  # half filled
    for slot, pointer in zip(slots, prepared.pointers, strict=True):
        block.values[slot] = pointer
    block.tag = prepared.serial


# Blocks keep memory of their own up to this many bytes: to take it from the pool of all regions
# takes as long as a small kernel.
OWN_BYTES = 1 << 15


@dataclass(frozen=True)
class Runner:
    """Call it with a block. slots: of workspace and scratch of all threads, None if the kernel
    needs neither; scratch: bytes of one thread; num_threads: 0 for as many as PyTorch has."""

    kernel: Kernel
    slots: tuple[int, int] | None
    workspace: int
    scratch: int
    num_threads: int

    def __call__(self, block: SlotBlock) -> None:
        if self.slots is None:
            self.kernel.run(block.address)
            return
        arena = POOL.take()
        self._place(block, arena.reserve(self._size()))
        self.kernel.run(block.address)
        POOL.give(arena)

    @property
    def is_small(self) -> bool:
        """Whether blocks can have all memory that the kernel needs."""
        return self.slots is not None and self._size() <= OWN_BYTES

    def equip(self, block: SlotBlock) -> None:
        """Give the block memory of its own, enough for as many threads as PyTorch has now."""
        block.threads = 0  # not yet
        block.memory = torch.empty(self._size(), dtype=torch.uint8, device="cpu")
        self._place(block, block.memory.data_ptr())
        block.threads = torch.get_num_threads()

    def _size(self) -> int:
        return self.workspace + self.scratch * (self.num_threads or torch.get_num_threads())

    def _place(self, block: SlotBlock, address: int) -> None:
        block.values[self.slots[0]] = address
        block.values[self.slots[1]] = address + self.workspace
