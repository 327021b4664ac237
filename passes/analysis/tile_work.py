"""Cycles and bytes of one tile of a kernel, for every tile: what does not depend on their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlir_npu.dialect.target import Dma, Target
from mlir_npu.passes.analysis.footprint import Access, Compute, KernelShape
from mlir_npu.passes.analysis.move_parts import move_parts
from mlir_npu.passes.analysis.tile_grid import buffer_bytes, elements, moved_bytes, product
from mlir_npu.passes.analysis.unit_cycles import (
    accumulator_fill_cycles,
    ceil_divide,
    contraction_cycles,
    move_cycles,
    vector_cycles,
    window_cycles,
)


@dataclass(frozen=True)
class TileWork:
    """What does not depend on the order of loops; arrays with one entry per tile.

    trips: iterations of every loop. matrix, vector: cycles of all iterations of the reduction loops
    for one tile of the parallel loops; last_step: those of the last iteration, of which epilogue
    come after the root. moves: cycles of one move of each operand, all of its parts, 0 if it is not
    moved; transfers: those of all parts one after the other. sizes: bytes of one buffer.
    """

    trips: np.ndarray
    matrix: np.ndarray
    vector: np.ndarray
    last_step: np.ndarray
    epilogue: np.ndarray
    moves: tuple[np.ndarray, ...]
    transfers: tuple[np.ndarray, ...]
    sizes: tuple[np.ndarray, ...]

    def __getitem__(self, rows) -> TileWork:
        """The same for some of the tiles."""
        return TileWork(
            self.trips[rows],
            self.matrix[rows],
            self.vector[rows],
            self.last_step[rows],
            self.epilogue[rows],
            tuple(move[rows] for move in self.moves),
            tuple(transfer[rows] for transfer in self.transfers),
            tuple(size[rows] for size in self.sizes),
        )


def tile_work(shape: KernelShape, tiles: np.ndarray, target: Target) -> TileWork:
    """Cycles and bytes of every tile."""
    trips = np.array(shape.extents, dtype=np.int64) // tiles
    zeros = np.zeros(len(tiles), dtype=np.int64)
    on_unit = {"matrix": zeros, "vector": zeros}
    steps_of = []
    for access in shape.accesses:
        if access.space == "acc":
            cells = accumulator_fill_cycles(elements(access, tiles), target.matrix)
            on_unit["matrix"] = on_unit["matrix"] + cells
    for compute in shape.computes:
        once = _compute_cycles(shape, compute, tiles, target)
        steps = product(trips, [i for i in compute.loops if shape.loops[i].reduction])
        unit = "matrix" if compute.unit == "matrix" else "vector"
        on_unit[unit] = on_unit[unit] + once * steps
        steps_of.append(once)
    moves = [_move(shape, access, tiles, target.dma) for access in shape.accesses]
    alignments = {"sram": target.sram.alignment, "acc": target.acc.alignment}
    return TileWork(
        trips,
        on_unit["matrix"],
        on_unit["vector"],
        sum(steps_of, zeros),
        sum(steps_of[1:], zeros),
        tuple(move for move, _ in moves),
        tuple(transfer for _, transfer in moves),
        tuple(buffer_bytes(access, tiles, alignments[access.space]) for access in shape.accesses),
    )


def _move(shape: KernelShape, access: Access, tiles: np.ndarray, dma: Dma):
    """Cycles of one move until it is done, and cycles that it keeps channels busy."""
    if not access.moved:
        return (np.zeros(len(tiles), dtype=np.int64),) * 2
    parts = move_parts(shape, access, tiles, dma)
    part = move_cycles(ceil_divide(moved_bytes(shape, access, tiles), parts), dma)
    return ceil_divide(parts, dma.channels) * part, parts * part


def _compute_cycles(shape: KernelShape, compute: Compute, tiles: np.ndarray, target: Target):
    points = product(tiles, compute.loops)
    if compute.unit == "window":
        return window_cycles(points, 1, target.vector.lanes)
    if compute.unit == "vector":
        return vector_cycles(points, compute.operations, target.vector.lanes)
    depth, channels = product(tiles, shape.rows), product(tiles, shape.columns)
    rate = target.matrix.rate(shape.factor_type)
    outputs = points // (depth * channels)
    return contraction_cycles(outputs, 1, depth, channels, target.matrix, rate)
