"""Where a move lands, and how many dimensions a DMA engine needs for it."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.buffers import Buffer
from mlir_npu.simulator.errors import SimulationError


def merged_dims(source: Buffer, target: Buffer) -> list[tuple[int, int, int]]:
    """(extent, source stride, target stride) of a move between boxes of one shape, outermost first.

    Dimensions of extent 1 are dropped, and two are merged where both sides are contiguous in them.
    """
    dims: list[tuple[int, int, int]] = []
    for extent, read, written in zip(source.shape, source.strides, target.strides):
        if extent == 1:
            continue
        if dims and dims[-1][1:] == (extent * read, extent * written):
            extent *= dims.pop()[0]
        dims.append((extent, read, written))
    return dims


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
