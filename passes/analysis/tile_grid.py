"""All allowed tiles of a kernel as NumPy arrays, one row a tile, and what its operands need."""

import math

import numpy as np

from mlir_npu.passes.analysis.footprint import Access, KernelShape

MOST_TILES = 200_000
ROUNDING = 1e-6  # a mean that is whole but for the last bits of a float is whole


def all_tiles(shape: KernelShape, whole: tuple[int, ...] = (), any_size: bool = False):
    """The products of the allowed sizes of every loop; loops in `whole` stay whole.

    Large tiles come first, and of equally many tiles those which split the outer loops. If there
    are more than MOST_TILES, the loops with the most sizes lose every second one.
    """
    sizes = [
        [loop.extent] if i in whole else list(loop.tiles(any_size))[::-1]
        for i, loop in enumerate(shape.loops)
    ]
    while math.prod(map(len, sizes)) > MOST_TILES:
        longest = max(range(len(sizes)), key=lambda i: len(sizes[i]))
        sizes[longest] = [*sizes[longest][:-1:2], sizes[longest][-1]]
    if not sizes:
        return np.ones((1, 0), dtype=np.int64)
    inner_first = [np.array(s, dtype=np.int64) for s in reversed(sizes)]
    grid = np.meshgrid(*inner_first, indexing="ij")
    return np.stack([axis.ravel() for axis in reversed(grid)], axis=1)


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of small non-negative numbers, in order, and for each row which it is."""
    keys = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        keys = keys * (column.max() + 1) + column
    _, first, members = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], members.reshape(-1)


def product(columns: np.ndarray, loops) -> np.ndarray:
    """Product over some loops, for every tile."""
    return np.prod(columns[:, list(loops)], axis=1)


def dim_extents(access: Access, tiles: np.ndarray) -> list[np.ndarray]:
    """Extent of every dimension of an operand, for every tile."""
    extents = []
    for dim in access.dims:
        extent = np.ones(len(tiles), dtype=np.int64)
        for loop, coefficient in dim:
            extent += coefficient * (tiles[:, loop] - 1)
        extents.append(extent)
    return extents


def elements(access: Access, tiles: np.ndarray) -> np.ndarray:
    total = np.ones(len(tiles), dtype=np.int64)
    for extent in dim_extents(access, tiles):
        total *= extent
    return total


def buffer_bytes(access: Access, tiles: np.ndarray, alignment: int) -> np.ndarray:
    """What one buffer for a tile of an operand occupies."""
    size = elements(access, tiles) * access.element_bytes
    return -(-size // alignment) * alignment


def moved_bytes(shape: KernelShape, access: Access, tiles: np.ndarray) -> np.ndarray:
    """What a move of a tile takes from dram or brings there, on average: pads are made on chip."""
    if access.image is None:
        return elements(access, tiles) * access.element_bytes
    total = np.full(len(tiles), float(access.element_bytes))
    for dim, (low, extent) in zip(access.dims, access.image):
        total *= _mean_data(shape, dim, tiles, low, extent)
    return np.ceil(total - ROUNDING).astype(np.int64)


def _mean_data(shape: KernelShape, dim, tiles: np.ndarray, low: int, extent: int) -> np.ndarray:
    """How many elements of a tile are data, which a dimension holds behind `low` padded ones."""
    distinct, members = distinct_rows(tiles[:, [loop for loop, _ in dim]])
    means = np.ones(len(distinct))
    for row, sizes in enumerate(distinct):
        span, series = 1, [(1, 1)]
        for (loop, coefficient), size in zip(dim, sizes):
            span += coefficient * (size - 1)
            series.append((coefficient * size, shape.loops[loop].extent // size))
        series.sort(key=lambda steps: steps[1])
        starts = np.array([-low])
        for step, count in series[:-1]:
            starts = np.add.outer(starts, step * np.arange(count)).ravel()
        step, count = series[-1]
        ends, begins = (_clipped_sum(starts + shift, step, count, extent) for shift in (span, 0))
        means[row] = np.sum(ends - begins) / (len(starts) * count)
    return means[members]


def _clipped_sum(starts: np.ndarray, step: int, count: int, limit: int) -> np.ndarray:
    """Sum of `start + step * i`, each clipped to [0, limit], over the first `count` i."""
    below = np.clip(-starts // step + 1, 0, count)
    within = np.clip(-((starts - limit) // step), below, count)
    inside = (within - below) * starts + step * (within * (within - 1) - below * (below - 1)) // 2
    return inside + limit * (count - within)
