"""Where a move lands, and how many dimensions a DMA engine needs for it."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.move_shape import effective_dims
from mlir_npu.simulator.buffers import Buffer
from mlir_npu.simulator.errors import SimulationError


def rank_of(source: Buffer, landing: Buffer) -> int:
    """Counters that a DMA engine needs for a move between boxes of one shape."""
    return len(effective_dims(landing.shape, source.strides, landing.strides))


def landing_of(
    op: ir.Operation, source: Buffer, target: Buffer, low: Sequence[int], order: Sequence[int]
) -> Buffer:
    """The part of the target that the source lands in."""
    moved = source.permuted(order)
    try:
        landing = target.box(low, moved.shape) if low else target
    except ValueError as error:
        raise SimulationError(op, f"moves {source} to {error} of {target}") from None
    if landing.shape != moved.shape:
        raise SimulationError(op, f"moves {source} to {target}, which has another shape")
    return landing
