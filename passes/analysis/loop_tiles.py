"""Tiles of the outer loops of a group: large enough to vectorise, small enough for the cache.

A tile covers whole inner loops before it covers a part of the next outer one, so that it is one
run of memory where the values allow. Tiles do not have to divide their loop: the last one starts
early enough to be whole, and computes some elements a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.passes.analysis.loop_groups import (
    LINE_ELEMENTS,
    Computation,
    LoopGroup,
    bytes_per_iteration,
    walks_lines,
)

# Elements of one tile of the widest member; what a tile keeps for later members.
TILE_ELEMENTS = 4096
TILE_BYTES = 16 << 10
# Consecutive elements that a tile takes from rows of which it does not take all.
RUN_ELEMENTS = 16 * LINE_ELEMENTS
# The same of a reduction alone, which reads whole rows of a tile one after the other, and its tiles
# for each core: 320 of 2560 elements took a third longer than 640, 2560 a tenth less.
LONG_RUN_ELEMENTS, LONG_TILES_PER_CORE = 4096, 2
# What a tile of such runs may keep: softmax of 4096 rows over columns is twice as fast when runs
# are long than when the tile stays in the second cache.
RUN_BYTES = 2 << 20
# Tiles for each core: as many as even out threads that start late.
TILES_PER_CORE = 4
# Work in elements of plain arithmetic below which one thread is as fast as several.
PARALLEL_WORK = 65536


@dataclass(frozen=True)
class LoopTiles:
    """Extent of a tile along every outer loop, and whether threads share the tiles."""

    sizes: tuple[int, ...]
    parallel: bool


def choose_loop_tiles(
    group: LoopGroup, computations: Sequence[Computation], work: int, cores: int
) -> LoopTiles:
    """`work`: arithmetic of the whole group, in the unit of PARALLEL_WORK."""
    parallel = work >= PARALLEL_WORK and cores > 1
    inner = max(computations[m].volume for m in group.members) // max(1, group.iterations)
    kept = bytes_per_iteration(group, computations)
    wanted = max(1, min(TILE_ELEMENTS // max(1, inner), TILE_BYTES // max(1, kept)))
    per_core, alone = TILES_PER_CORE, _is_one_reduction(group, computations)
    if walks_lines(group, computations) and inner > 1:
        wanted = max(wanted, LONG_RUN_ELEMENTS if alone else RUN_ELEMENTS)
        per_core = LONG_TILES_PER_CORE if alone else per_core
        while wanted > LINE_ELEMENTS and wanted * kept > RUN_BYTES:
            wanted //= 2
    elif alone:
        wanted = max(1, min(group.iterations, TILE_BYTES // max(1, kept)))
    if parallel:
        wanted = min(wanted, max(1, group.iterations // (per_core * cores)))
    sizes = _spread(group.extents, wanted)
    if walks_lines(group, computations):
        sizes = (*sizes[:-1], _whole_lines(sizes[-1], group.extents[-1]))
    return LoopTiles(sizes, parallel)


def _is_one_reduction(group: LoopGroup, computations: Sequence[Computation]) -> bool:
    """Whether one member reads all that is large, once: rows far apart then are several streams."""
    large = [m for m in group.members if computations[m].volume > group.iterations]
    return len(large) == 1 and bool(computations[large[0]].reductions)


def trips(extents: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(-(-extent // size) for extent, size in zip(extents, sizes, strict=True))


def _whole_lines(size: int, extent: int) -> int:
    return min(extent, -(-size // LINE_ELEMENTS) * LINE_ELEMENTS)


def _spread(extents: Sequence[int], wanted: int) -> tuple[int, ...]:
    """About `wanted` iterations, the innermost loops first, tiles of a loop nearly equal."""
    sizes: list[int] = []
    for extent in reversed(extents):
        size = min(extent, max(1, wanted))
        size = -(-extent // -(-extent // size))
        sizes.append(size)
        wanted = wanted // extent if size == extent else 1
    return tuple(reversed(sizes))
