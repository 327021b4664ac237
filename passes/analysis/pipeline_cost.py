"""Cycles and bytes of a kernel whose tiles are double-buffered, for every tile and order of loops.

The units are those of `unit_cycles`. An operand is moved as often as the loops run from the
outermost one down to the innermost one that it depends on; reductions are the innermost loops. With
two buffers the units work at the same time, and the kernel takes as long as the longest of these:

* compute: the first loads, all matrix and vector cycles, the last drain and store. Two accumulators
  let the vector unit drain one while the matrix unit fills the other.
* dma in: all loads, then what is left to do with the last one. What only the epilogue reads comes
  last, while the root computes.
* dma out: what comes before the first store, then all stores.

A move is several where `split-dma` makes it so (`move_parts`); these run on all channels. Moves of
one operand follow each other: loads are one iteration ahead, and two stores are under way.

A load in an outer loop holds back the loads of the inner loops once each time (`_stalls`). A store
is waited for two iterations later, before the iteration after that is issued, so that three
iterations take at least compute, drain and store of one (`_in_flight`). With one buffer everything
is waited for and the cycles add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlir_npu.passes.analysis.footprint import KernelShape
from mlir_npu.passes.analysis.tile_grid import product
from mlir_npu.passes.analysis.tile_work import TileWork
from mlir_npu.passes.analysis.unit_cycles import ceil_divide

IN_FLIGHT = {False: 1, True: 2}  # moves of one operand at a time: loads, stores


@dataclass(frozen=True)
class Occupancy:
    """Cycles of every unit over the whole kernel.

    dma_in, dma_out: that the moves take at the least, side by side; loads, stores: one by one.
    """

    matrix: np.ndarray
    vector: np.ndarray
    dma_in: np.ndarray
    dma_out: np.ndarray
    loads: np.ndarray
    stores: np.ndarray


def move_counts(
    shape: KernelShape, trips: np.ndarray, order: Sequence[int]
) -> tuple[np.ndarray, ...]:
    """How often each operand is moved, or an accumulator started, with the loops in this order."""
    parallel = product(trips, shape.parallel)
    counts = []
    for access in shape.accesses:
        running = count = np.ones(len(trips), dtype=np.int64)
        for loop in (*order, *shape.reductions):
            running = running * trips[:, loop]
            if access.depends_on(loop):
                count = np.where(trips[:, loop] > 1, running, count)
        counts.append(parallel if access.space == "acc" else count)
    return tuple(counts)


def memory(
    shape: KernelShape, work: TileWork, counts: Sequence[np.ndarray], buffers: int, acc_buffers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of sram and of acc, with the copies of what is moved more than once."""
    totals = {"sram": np.zeros_like(work.matrix), "acc": np.zeros_like(work.matrix)}
    copies = {"sram": buffers, "acc": acc_buffers}
    for access, size, count in zip(shape.accesses, work.sizes, counts):
        turns = copies[access.space] if access.moved or access.space == "acc" else 1
        totals[access.space] += size * np.where(count > 1, turns, 1)
    return totals["sram"], totals["acc"]


def occupancy(
    shape: KernelShape, work: TileWork, counts: Sequence[np.ndarray], channels: int
) -> Occupancy:
    """Total cycles of the units."""
    parallel = product(work.trips, shape.parallel)
    loads, dma_in = _moves(shape, work, counts, channels, written=False)
    stores, dma_out = _moves(shape, work, counts, channels, written=True)
    return Occupancy(work.matrix * parallel, work.vector * parallel, dma_in, dma_out, loads, stores)


def _moves(shape: KernelShape, work: TileWork, counts, channels: int, written: bool):
    """Cycles of all loads, or of all stores: one by one, and at the least."""
    one_by_one = once = busy = longest = np.zeros_like(work.matrix)
    operands = zip(shape.accesses, work.moves, work.transfers, counts)
    for access, move, transfer, count in operands:
        if access.written == written:
            one_by_one = one_by_one + move * count
            once = once + np.where(count == 1, move, 0)  # waited for before the next starts
            again = np.where(count == 1, 0, count)
            busy = busy + transfer * again
            longest = np.maximum(longest, ceil_divide(move * again, IN_FLIGHT[written]))
    return one_by_one, once + np.maximum(longest, ceil_divide(busy, channels))


def serial_cycles(busy: Occupancy) -> np.ndarray:
    """Everything is waited for before the next thing starts."""
    return busy.matrix + busy.vector + busy.loads + busy.stores


def pipelined_cycles(
    shape: KernelShape,
    work: TileWork,
    counts: Sequence[np.ndarray],
    busy: Occupancy,
    acc_buffers: int,
    channels: int,
) -> np.ndarray:
    """Cycles with two buffers for every operand that is moved more than once."""
    first_load = _first_load(shape, work, counts, channels)
    store = _stores(shape, work)
    if acc_buffers > 1:
        compute = np.maximum(busy.matrix + work.vector, work.matrix + busy.vector)
    else:
        compute = busy.matrix + busy.vector
    stalls = _stalls(shape, work, counts, compute)
    late = _late_loads(shape, work, counts)
    one_tile = work.matrix + work.vector
    ends = (
        first_load + compute + stalls + store,
        first_load + _in_flight(busy, one_tile + store),
        busy.dma_in + np.maximum(work.last_step - late, work.epilogue) + store,
        first_load + one_tile + busy.dma_out,
    )
    return np.max(ends, axis=0)


def _first_load(shape, work: TileWork, counts, channels: int) -> np.ndarray:
    """Loads before the first compute: what is loaded once, and what the root reads."""
    once = together = longest = np.zeros_like(work.matrix)
    for access, move, transfer, count in zip(shape.accesses, work.moves, work.transfers, counts):
        if access.written:
            continue
        once = once + np.where(count == 1, move, 0)
        if not shape.reductions or any(access.depends_on(loop) for loop in shape.reductions):
            together = together + np.where(count > 1, transfer, 0)
            longest = np.maximum(longest, np.where(count > 1, move, 0))
    return once + np.maximum(longest, ceil_divide(together, channels))


def _late_loads(shape, work: TileWork, counts) -> np.ndarray:
    """Loads of the last tile that follow those of its root, which then computes meanwhile."""
    tiles = product(work.trips, shape.parallel)
    steps = product(work.trips, shape.reductions)
    total = np.zeros_like(work.matrix)
    for access, move, count in zip(shape.accesses, work.moves, counts):
        reduced = any(access.depends_on(loop) for loop in shape.reductions)
        if shape.reductions and not reduced and not access.written:
            total = total + np.where((steps == 1) & (count == tiles) & (count > 1), move, 0)
    return total


def _stores(shape, work: TileWork) -> np.ndarray:
    moves = (m for access, m in zip(shape.accesses, work.moves) if access.written)
    return sum(moves, np.zeros_like(work.matrix))


def _in_flight(busy: Occupancy, one_tile: np.ndarray) -> np.ndarray:
    """A third of compute and stores, when three iterations are under way at any time."""
    return ceil_divide(busy.matrix + busy.vector + busy.stores + 2 * one_tile, 3)


def _stalls(shape, work: TileWork, counts, compute: np.ndarray) -> np.ndarray:
    """Waits of inner loops for loads of outer ones: L + l - T each time but the first.

    L: the load of the outer loop. l: those of the innermost loop, T: the compute of one of its
    iterations; only one iteration of it is fetched ahead.
    """
    total = np.zeros_like(compute)
    operands = zip(shape.accesses, work.moves, counts)
    loads = [(move, n) for access, move, n in operands if access.moved and not access.written]
    if not loads:
        return total
    most = np.max([count for _, count in loads], axis=0)
    inner = sum(np.where(count == most, move, 0) for move, count in loads)
    slack = compute // most - inner
    for move, count in loads:
        outer = (count > 1) & (count < most)
        total = total + np.where(outer, (count - 1) * np.maximum(0, move - slack), 0)
    return total
