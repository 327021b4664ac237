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
        size = self.workspace
        if self.scratch:
            size += self.scratch * (self.num_threads or torch.get_num_threads())
        arena = POOL.take()
        base = arena.reserve(size)
        block.values[self.slots[0]] = base
        block.values[self.slots[1]] = base + self.workspace
        self.kernel.run(block.address)
        POOL.give(arena)
