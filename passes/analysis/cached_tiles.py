"""The cost of a tile on a target whose sram is a cache: a CPU with several cores.

A tile costs its moves plus its compute, the kernel that times the tiles of one core. Moves that
only copy stream from the cache, at a cost for every run of memory; those that transpose are made.
An image tile that leaves no room for weights is fetched again for every block of channels. The
capacity is a goal: a tile that exceeds it is only more expensive. Reductions stay whole and vectors
full.
"""

from collections.abc import Sequence

import numpy as np

from mlir_npu.dialect.target import Target
from mlir_npu.passes.analysis.footprint import Access, KernelShape
from mlir_npu.passes.analysis.permutation import permuted
from mlir_npu.passes.analysis.tile_grid import dim_extents, elements

# Below this much work a second thread costs more than it does (measured on single layers).
PARALLEL_WORK = 150_000
TILE_OVERHEAD_CYCLES = 200
CACHE_SHARE = 0.75
TRANSPOSED_SHARE = 0.25  # dram's side of a transpose needs room too, in lines far apart
RUN_CYCLES = 8
TRANSPOSE_PASSES = 3  # what a transpose in registers costs beside a copy of the same bytes
FIRST_LEVEL_BYTES = 1 << 15  # holds both sides of a transpose, or they come from the second level
SPILL_PASSES = 2  # what leaves the cache is written there and read again


def work(shape: KernelShape) -> int:
    """Scalar operations, a multiply-add counted once."""
    return shape.points() * (1 if shape.unit == "matrix" else shape.operations)


def is_worth_sharing(shape: KernelShape) -> bool:
    """Whether there is enough work for more than one core."""
    return work(shape) > PARALLEL_WORK


def cycles(shape: KernelShape, tiles: np.ndarray, target: Target) -> np.ndarray:
    """Estimated cycles of the whole kernel for every tile."""
    extents = np.array(shape.extents)
    counts = extents // tiles
    parallel = np.prod(counts[:, list(shape.parallel)], axis=1)
    steps = np.prod(counts[:, list(shape.reductions)], axis=1)
    per_tile = steps * _compute_cycles(shape, tiles, target) + TILE_OVERHEAD_CYCLES
    for access in shape.accesses:
        if access.space != "sram":
            continue
        reduced = any(access.depends_on(loop) for loop in shape.reductions)
        runs = contiguous_runs(access, tiles, extents[np.newaxis])
        move = _move_cycles(access, tiles, target) + RUN_CYCLES * runs
        per_tile = per_tile + move * (steps if reduced else 1)
    per_tile = per_tile + _reload_cycles(shape, tiles, target) + _spill_cycles(shape, tiles, target)
    rounds = -(-parallel // target.cores) if is_worth_sharing(shape) else parallel
    return rounds * per_tile


def contiguous_runs(access: Access, tiles: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """How many separate runs of memory a tile of an operand consists of."""
    runs = np.ones(len(tiles), dtype=np.int64)
    joined = np.full(len(tiles), True)
    order = access.order or range(len(access.dims))
    dims = list(zip(dim_extents(access, tiles), dim_extents(access, whole)))
    for extent, full_extent in reversed(permuted(dims, order)):
        runs *= np.where(joined, 1, extent)
        joined &= extent == full_extent
    return runs


def _compute_cycles(shape: KernelShape, tiles: np.ndarray, target: Target) -> np.ndarray:
    if shape.unit == "vector":
        return -(-np.prod(tiles, axis=1) * shape.operations // target.vector.lanes)
    # no matrix unit: two multiply-adds of a vector per cycle; vectors lie within a block of columns
    lanes = np.prod(tiles[:, list(shape.columns[-1:])], axis=1)
    vectors = -(-lanes // target.vector.lanes)
    plain = -(-np.prod(tiles, axis=1) // lanes * vectors // 2)
    return plain if shape.transforms is None else _fast_cycles(shape, plain, tiles, target)


def _fast_cycles(
    shape: KernelShape, plain: np.ndarray, tiles: np.ndarray, target: Target
) -> np.ndarray:
    """Fewer products, and their transforms."""
    fast = shape.transforms
    total = plain * fast.products.numerator // fast.products.denominator
    for compute in fast.computes:
        points = np.prod(tiles[:, list(compute.loops)], axis=1)
        total = total + points * compute.operations // target.vector.lanes
    return total


def _move_cycles(access: Access, tiles: np.ndarray, target: Target) -> np.ndarray:
    """A move that pads or transposes is a copy, the rest streams."""
    setup = target.dma.setup_cycles if access.padded or access.order else 0
    size = elements(access, tiles) * access.element_bytes
    passes = TRANSPOSE_PASSES if access.order else 1
    return setup + -(-size * passes // target.dma.bytes_per_cycle)


def _spill_cycles(shape: KernelShape, tiles: np.ndarray, target: Target) -> np.ndarray:
    """For what the cache does not hold of what is made for a tile: transposes and transforms."""
    transposed = _bytes([access for access in shape.accesses if access.order], tiles)
    transforms = _bytes(shape.transforms.scratch if shape.transforms is not None else (), tiles)
    excess = sum(
        np.maximum(held - int(target.sram.bytes * share), 0)
        for held, share in (
            (transposed + transforms, CACHE_SHARE),
            (transposed, TRANSPOSED_SHARE),
        )
    )
    cycles_ = SPILL_PASSES * excess // target.dma.bytes_per_cycle
    if shape.unit == "vector":
        beyond = np.maximum(2 * transposed - FIRST_LEVEL_BYTES, 0)
        cycles_ = cycles_ + beyond // target.dma.bytes_per_cycle
    return cycles_


def _bytes(accesses: Sequence[Access], tiles: np.ndarray) -> np.ndarray:
    sizes = (elements(access, tiles) * access.element_bytes for access in accesses)
    return sum(sizes, np.zeros(len(tiles), dtype=np.int64))


def _reload_cycles(shape: KernelShape, tiles: np.ndarray, target: Target) -> np.ndarray:
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
    excess = image + panel > target.sram.bytes * CACHE_SHARE
    return np.where(excess, image * (blocks - 1) // target.dma.bytes_per_cycle, 0)
