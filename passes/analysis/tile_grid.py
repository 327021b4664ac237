"""All allowed tiles of a kernel as NumPy arrays, one row a tile, and what its operands need."""
import numpy as np

from mlir_npu.passes.analysis.footprint import Access, KernelShape


def all_tiles(shape: KernelShape, whole: tuple[int, ...] = (), any_size: bool = False):
    """The products of the allowed sizes of every loop; loops in `whole` stay whole.

    Large tiles come first, and of equally many tiles those which split the outer loops.
    """
    sizes = [
        [loop.extent] if i in whole else list(loop.tiles(any_size))[::-1]
        for i, loop in enumerate(shape.loops)
    ]
    if not sizes:
        return np.ones((1, 0), dtype=np.int64)
    inner_first = [np.array(s, dtype=np.int64) for s in reversed(sizes)]
    grid = np.meshgrid(*inner_first, indexing="ij")
    return np.stack([axis.ravel() for axis in reversed(grid)], axis=1)


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


def moved_bytes(access: Access, tiles: np.ndarray) -> np.ndarray:
    """What the largest move of a tile takes from dram or brings there: a pad is made on chip."""
    total = np.full(len(tiles), access.element_bytes, dtype=np.int64)
    image = access.image or (None,) * len(access.dims)
    for extent, limit in zip(dim_extents(access, tiles), image):
        total *= extent if limit is None else np.minimum(extent, limit)
    return total
