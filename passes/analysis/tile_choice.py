"""Choose tile, order of loops and buffers of a kernel: the cheapest of all that fit the memories.

Pure Python and NumPy, no IR. The candidates are the products of the divisors of the loops, with
every order of the tile loops and one or two buffers, so the search is exhaustive and has no order
to get wrong. A tile may fill a part of a vector: the cost says what that loses. What would be taken
with unlimited memory tells whether a memory bound the choice; if none did, the busiest unit does.

On a target with caches there are no orders and buffers, and a tile need not fit (`cached_tiles`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mlir_npu.dialect.target import Target
from mlir_npu.passes.analysis import cached_tiles, pipeline_cost
from mlir_npu.passes.analysis.footprint import Footprint, KernelShape, footprint
from mlir_npu.passes.analysis.tile_grid import all_tiles, buffer_bytes
from mlir_npu.passes.analysis.tile_orders import groups, orders
from mlir_npu.passes.analysis.tile_work import tile_work

MODES = ("pipelined", "serial", "untiled")
WORTH_NAMING = 0.99  # share of the cycles below which a larger memory would have helped


@dataclass(frozen=True)
class Choice:
    """A tile over all loops of the kernel, what it occupies, and what kept it from being faster.

    order: the parallel loops, outermost first, None on a cached target; buffers: of every operand
    that is moved more than once; acc_buffers: of accumulators; cycles: the estimate.
    """

    tile: tuple[int, ...]
    parallel: bool
    sram_bytes: int
    acc_bytes: int
    bound: str
    order: tuple[int, ...] | None = None
    buffers: int = 1
    acc_buffers: int = 1
    cycles: int = 0


class DoesNotFit(Exception):
    """Even the smallest tile exceeds a memory."""

    def __init__(self, memory: str, needed: int, available: int, smallest: Footprint):
        self.memory, self.needed, self.available = memory, needed, available
        self.largest = tuple(smallest.largest(memory))
        shown = ", ".join(f"{buffer.name} ({buffer.bytes} bytes)" for buffer in self.largest)
        super().__init__(
            f"the smallest tile needs {needed} of {available} bytes of {memory}; "
            f"largest buffers: {shown}"
        )


def choose_tile(shape: KernelShape, target: Target, mode: str = "pipelined") -> Choice:
    """The cheapest choice that fits; raises DoesNotFit.

    mode: "pipelined"; "serial", without second buffers; "untiled", as if memories were infinite.
    Both are the same as "pipelined" on a cached target.
    """
    if target.cached:
        return _choose_cached(shape, target)
    if mode == "untiled":
        largest = np.array([[loop.tiles()[-1] for loop in shape.loops]], dtype=np.int64)
        found = _search(shape, largest.reshape(1, -1), target, "serial")
        return replace(found.any, bound="nothing: untiled")
    found = _search(shape, all_tiles(shape, any_size=True), target, mode)
    if found.fits is None:
        raise _does_not_fit(shape, target)
    return replace(found.fits, bound=_bound(shape, found, target))


@dataclass(frozen=True)
class _Found:
    """The cheapest choice that fits, None if none does, and the cheapest of all."""

    fits: Choice | None
    any: Choice


def _search(shape: KernelShape, tiles: np.ndarray, target: Target, mode: str) -> _Found:
    work = tile_work(shape, tiles, target)
    fits = overall = None
    for split, rows in groups(shape, work.trips):
        own = work[rows]
        for order in orders(shape, split):
            for choice, fitting in _variants(shape, tiles[rows], own, order, target, mode):
                if fitting and (fits is None or choice.cycles < fits.cycles):
                    fits = choice
                if overall is None or choice.cycles < overall.cycles:
                    overall = choice
    return _Found(fits, overall)


def _variants(shape, tiles, work, order, target: Target, mode: str):
    """The cheapest tile of those that fit, and of all, for every number of buffers."""
    counts = pipeline_cost.move_counts(shape, work.trips, order)
    channels = target.dma.channels
    busy = pipeline_cost.occupancy(shape, work, counts, channels)
    copies = ((1, 1),) if mode == "serial" else ((1, 1), (2, 1), (2, 2))
    for buffers, acc_buffers in copies:
        cycles = pipeline_cost.serial_cycles(busy)
        if buffers > 1:
            cycles = pipeline_cost.pipelined_cycles(
                shape, work, counts, busy, acc_buffers, channels
            )
        sram, acc = pipeline_cost.memory(shape, work, counts, buffers, acc_buffers)
        allowed = (sram <= target.sram.bytes) & (acc <= target.acc.bytes)
        limited = np.where(allowed, cycles, np.iinfo(np.int64).max)
        for row, fitting in ((int(np.argmin(limited)), True), (int(np.argmin(cycles)), False)):
            if fitting and not allowed[row]:
                continue
            tile = tuple(int(size) for size in tiles[row])
            sizes = int(sram[row]), int(acc[row])
            yield (
                Choice(tile, False, *sizes, "", order, buffers, acc_buffers, int(cycles[row])),
                fitting,
            )


def _bound(shape: KernelShape, found: _Found, target: Target) -> str:
    """Which memory keeps the faster choice away, else the busiest unit."""
    chosen, faster = found.fits, found.any
    if faster.cycles < chosen.cycles * WORTH_NAMING:
        for name, needed, available in (
            ("sram", faster.sram_bytes, target.sram.bytes),
            ("acc", faster.acc_bytes, target.acc.bytes),
        ):
            if needed > available:
                wanted = "x".join(map(str, faster.tile))
                return f"{name}: tile {wanted} needs {needed} of {available} bytes"
    if chosen.tile == shape.extents:
        return "nothing: untiled"
    return busiest_unit(shape, chosen, target)


def busiest_unit(shape: KernelShape, choice: Choice, target: Target) -> str:
    """The unit that the choice keeps busy for the most cycles."""
    work = tile_work(shape, np.array([choice.tile]), target)
    counts = pipeline_cost.move_counts(shape, work.trips, choice.order)
    busy = pipeline_cost.occupancy(shape, work, counts, target.dma.channels)
    units = {
        "matrix unit": busy.matrix,
        "vector unit": busy.vector,
        "dma in": busy.dma_in,
        "dma out": busy.dma_out,
    }
    return max(units, key=lambda name: int(units[name][0]))


def _choose_cached(shape: KernelShape, target: Target) -> Choice:
    tiles = all_tiles(shape, whole=shape.reductions)
    chosen = tiles[int(np.argmin(cached_tiles.cycles(shape, tiles, target)))]
    return cached_choice(shape, tuple(int(size) for size in chosen), target)


def cached_choice(shape: KernelShape, tile: tuple[int, ...], target: Target) -> Choice:
    """A tile on a cached target, with what it occupies there."""
    shared = target.cores > 1 and cached_tiles.is_worth_sharing(shape)
    bound = "cores" if shared else "cost"
    if tile == shape.extents:
        bound = "nothing: untiled"
    used = {"sram": 0, "acc": 0}
    alignments = {"sram": target.sram.alignment, "acc": target.acc.alignment}
    for access in shape.accesses:
        size = buffer_bytes(access, np.array([tile]), alignments[access.space])
        used[access.space] += int(size[0])
    parallel = shared and shape.tile_count(tile, shape.parallel) > 1
    return Choice(tile, parallel, used["sram"], used["acc"], bound)


def _does_not_fit(shape: KernelShape, target: Target) -> DoesNotFit:
    smallest = [loop.tiles(any_size=True)[0] for loop in shape.loops]
    alignments = {"sram": target.sram.alignment, "acc": target.acc.alignment}
    needs = footprint(shape, smallest, alignments)
    for name, available in (("sram", target.sram.bytes), ("acc", target.acc.bytes)):
        if needs.bytes(name) > available:
            return DoesNotFit(name, needs.bytes(name), available, needs)
    raise AssertionError(f"tile {smallest} fits, but the search found none that does")
