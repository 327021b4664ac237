"""Choose the tile of a kernel: every allowed tile is scored, the cheapest one that fits is taken.

Pure Python and NumPy, no IR. The candidates are the products of the divisors of the loops, so the
search is exhaustive and has no order to get wrong; reductions stay whole and vectors full unless
nothing fits without splitting them. A tile costs its moves (`setup + bytes / rate` each) plus its
compute; the kernel costs that times the tiles that one core runs. The tile that would be taken with
unlimited memory tells which memory bound the choice.

On a target with caches the budget is a goal: a tile that exceeds it is only more expensive.
"""
from dataclasses import dataclass

import numpy as np

from mlir_npu.passes.analysis.footprint import Footprint, KernelShape, footprint

PARALLEL_WORK = 50_000
TILE_OVERHEAD_CYCLES = 200
CACHE_SHARE = 0.75
CACHED_RUN_CYCLES = 8


@dataclass(frozen=True)
class Budget:
    """The numbers of a target that tile choice reads. Bytes, and cycles of the target's clock."""

    sram_bytes: int
    acc_bytes: int
    sram_alignment: int
    acc_alignment: int
    cached: bool
    lanes: int
    matrix_rows: int
    matrix_columns: int
    dma_setup_cycles: int
    dma_bytes_per_cycle: int
    cores: int

    @classmethod
    def of(cls, target) -> "Budget":
        return cls(
            sram_bytes=target.sram.bytes,
            acc_bytes=target.acc.bytes,
            sram_alignment=target.sram.alignment,
            acc_alignment=target.acc.alignment,
            cached=target.cached,
            lanes=target.vector.lanes,
            matrix_rows=target.matrix.rows,
            matrix_columns=target.matrix.cols,
            dma_setup_cycles=target.dma.setup_cycles,
            dma_bytes_per_cycle=target.dma.bytes_per_cycle,
            cores=target.cores,
        )

    @property
    def alignments(self) -> dict[str, int]:
        return {"sram": self.sram_alignment, "acc": self.acc_alignment}


@dataclass(frozen=True)
class Choice:
    """A tile over all loops of the kernel, what it occupies, and what kept it from being larger."""

    tile: tuple[int, ...]
    parallel: bool
    sram_bytes: int
    acc_bytes: int
    bound: str


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


def choose_tile(shape: KernelShape, budget: Budget) -> Choice:
    """The cheapest tile that fits; raises DoesNotFit."""
    for reductions_split, any_size in ((False, False), (True, False), (True, True)):
        tiles = candidates(shape, reductions_split, any_size)
        costs = cycles(shape, tiles, budget)
        sram, acc = memory(shape, tiles, budget)
        fits = np.full(len(tiles), True)
        if not budget.cached:
            fits = (sram <= budget.sram_bytes) & (acc <= budget.acc_bytes)
        if fits.any():
            return _choice(shape, budget, tiles, costs, sram, acc, fits)
    raise _does_not_fit(shape, budget)


def candidates(shape: KernelShape, reductions_split: bool, any_size: bool) -> np.ndarray:
    """All allowed tiles, one row each; of equal ones that first which splits the outer loops."""
    sizes = []
    for loop in shape.loops:
        whole = loop.reduction and not reductions_split
        sizes.append([loop.extent] if whole else list(loop.tiles(any_size))[::-1])
    if not sizes:
        return np.ones((1, 0), dtype=np.int64)
    inner_first = [np.array(s, dtype=np.int64) for s in reversed(sizes)]
    grid = np.meshgrid(*inner_first, indexing="ij")
    return np.stack([axis.ravel() for axis in reversed(grid)], axis=1)


def dim_extents(access, tiles: np.ndarray) -> list[np.ndarray]:
    """Extent of every dimension of an operand, for every tile."""
    extents = []
    for dim in access.dims:
        extent = np.ones(len(tiles), dtype=np.int64)
        for loop, coefficient in dim:
            extent += coefficient * (tiles[:, loop] - 1)
        extents.append(extent)
    return extents


def elements(access, tiles: np.ndarray) -> np.ndarray:
    total = np.ones(len(tiles), dtype=np.int64)
    for extent in dim_extents(access, tiles):
        total *= extent
    return total


def contiguous_runs(access, tiles: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """How many separate runs of memory a tile of a row-major operand consists of."""
    runs = np.ones(len(tiles), dtype=np.int64)
    joined = np.full(len(tiles), True)
    full = dim_extents(access, whole)
    for extent, full_extent in reversed(list(zip(dim_extents(access, tiles), full))):
        runs *= np.where(joined, 1, extent)
        joined &= extent == full_extent
    return runs


def memory(shape: KernelShape, tiles: np.ndarray, budget: Budget):
    """Bytes of sram and of acc that every tile needs, one buffer per operand."""
    totals = {space: np.zeros(len(tiles), dtype=np.int64) for space in ("sram", "acc")}
    for access in shape.accesses:
        alignment = budget.alignments[access.space]
        size = elements(access, tiles) * access.element_bytes
        totals[access.space] += -(-size // alignment) * alignment
    return totals["sram"], totals["acc"]


def cycles(shape: KernelShape, tiles: np.ndarray, budget: Budget) -> np.ndarray:
    """Estimated cycles of the whole kernel for every tile."""
    extents = np.array(shape.extents)
    counts = extents // tiles
    parallel = np.prod(counts[:, list(shape.parallel)], axis=1)
    steps = np.prod(counts[:, list(shape.reductions)], axis=1)
    per_tile = steps * _compute_cycles(shape, tiles, budget) + TILE_OVERHEAD_CYCLES
    for access in shape.accesses:
        if access.space != "sram":
            continue
        reduced = any(access.depends_on(loop) for loop in shape.reductions)
        move = _move_cycles(access, tiles, budget)
        if budget.cached:
            move = move + CACHED_RUN_CYCLES * contiguous_runs(access, tiles, extents[np.newaxis])
        per_tile = per_tile + move * (steps if reduced else 1)
    if budget.cached:
        per_tile = per_tile + _reload_cycles(shape, tiles, budget)
    rounds = -(-parallel // budget.cores) if work(shape) > PARALLEL_WORK else parallel
    return rounds * per_tile


def work(shape: KernelShape) -> int:
    """Scalar operations, a multiply-add counted once."""
    return shape.points() * (1 if shape.unit == "matrix" else shape.operations)


def _compute_cycles(shape: KernelShape, tiles: np.ndarray, budget: Budget) -> np.ndarray:
    if shape.unit == "vector":
        return -(-np.prod(tiles, axis=1) * shape.operations // budget.lanes)
    if budget.cached:  # no matrix unit: two fused multiply-adds of a vector per cycle
        return -(-np.prod(tiles, axis=1) // (2 * budget.lanes))
    rows = np.prod(tiles[:, list(shape.rows)], axis=1)
    columns = np.prod(tiles[:, list(shape.columns)], axis=1)
    rest = np.prod(tiles, axis=1) // (rows * columns)
    return rest * -(-rows // budget.matrix_rows) * -(-columns // budget.matrix_columns)


def _move_cycles(access, tiles: np.ndarray, budget: Budget) -> np.ndarray:
    """A move into or out of sram; with caches only a padding move is a copy, the rest streams."""
    setup = 0 if budget.cached and not access.padded else budget.dma_setup_cycles
    size = elements(access, tiles) * access.element_bytes
    return setup + -(-size // budget.dma_bytes_per_cycle)


def _reload_cycles(shape: KernelShape, tiles: np.ndarray, budget: Budget) -> np.ndarray:
    """An image tile that leaves no room for weights is fetched for every block of channels."""
    image = np.zeros(len(tiles), dtype=np.int64)
    if not shape.columns:
        return image
    blocks = tiles[:, shape.columns[0]]
    panel = np.zeros_like(image)
    for access in shape.accesses:
        size = elements(access, tiles) * access.element_bytes
        if access.written or access.space != "sram":
            continue
        if not access.depends_on(shape.columns[0]):
            image += size
        elif any(access.depends_on(loop) for loop in shape.reductions):
            panel += size // blocks
    excess = image + panel > budget.sram_bytes * CACHE_SHARE
    return np.where(excess, image * (blocks - 1) // budget.dma_bytes_per_cycle, 0)


def _choice(shape, budget, tiles, costs, sram, acc, fits) -> Choice:
    chosen = int(np.argmin(np.where(fits, costs, np.iinfo(np.int64).max)))
    tile = tuple(int(size) for size in tiles[chosen])
    parallel = work(shape) > PARALLEL_WORK and shape.tile_count(tile, shape.parallel) > 1
    bound = _bound(shape, budget, tiles, costs, sram, acc, chosen)
    return Choice(tile, parallel and budget.cores > 1, int(sram[chosen]), int(acc[chosen]), bound)


def _bound(shape, budget, tiles, costs, sram, acc, chosen) -> str:
    """Which memory keeps the cheaper tile away, else what the tile itself achieves."""
    better = int(np.argmin(costs))
    if costs[better] < costs[chosen] and not budget.cached:
        for name, needed, available in (
            ("sram", sram[better], budget.sram_bytes),
            ("acc", acc[better], budget.acc_bytes),
        ):
            if needed > available:
                wanted = "x".join(str(int(size)) for size in tiles[better])
                return f"{name}: tile {wanted} needs {int(needed)} of {available} bytes"
    if tuple(tiles[chosen]) == shape.extents:
        return "nothing: untiled"
    return "cores" if budget.cores > 1 and work(shape) > PARALLEL_WORK else "cost"


def _does_not_fit(shape: KernelShape, budget: Budget) -> DoesNotFit:
    smallest = [loop.tiles(any_size=True)[0] for loop in shape.loops]
    needs = footprint(shape, smallest, budget.alignments)
    for name, available in (("sram", budget.sram_bytes), ("acc", budget.acc_bytes)):
        if needs.bytes(name) > available:
            return DoesNotFit(name, needs.bytes(name), available, needs)
    raise AssertionError(f"tile {smallest} fits, but the search found none that does")
