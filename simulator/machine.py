"""What a program runs on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.buffers import Buffer


class Machine(Protocol):
    """What executes moves and compute. Each method prepares an op once."""

    def allocate(self, op: ir.Operation) -> Buffer:
        """The buffer of a memref.alloc or memref.get_global."""

    def check_place(self, op: ir.Operation, buffer: Buffer) -> None:
        """Raises SimulationError if `buffer`, which the memref.view `op` makes, cannot be there."""

    def move(self, op: ir.Operation) -> Callable[[Buffer, Buffer, Sequence[int]], Any]:
        """dma_start, as a function of source, target and `low` that returns a token."""

    def no_move(self) -> Any:
        """The token of dma_none."""

    def wait(self, op: ir.Operation) -> Callable[[Sequence[Any]], None]:
        """dma_wait, as a function of the tokens."""

    def compute(self, op: ir.Operation) -> Callable[[Sequence[Buffer]], None]:
        """Any other npu op, as a function of its buffers."""
