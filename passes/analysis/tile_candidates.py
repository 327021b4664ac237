"""Tiles of one kernel that are worth measuring, on a target with caches.

The cost model ranks all tiles; the ones taken are cheap by the model and differ from each other, so
that a few measurements see different kinds of tiles and not one kind with small changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2

import numpy as np

from mlir_npu.dialect.target import Target
from mlir_npu.passes.analysis import cached_tiles
from mlir_npu.passes.analysis.footprint import KernelShape
from mlir_npu.passes.analysis.tile_choice import Choice, cached_choice, choose_tile
from mlir_npu.passes.analysis.tile_grid import all_tiles

TILES = 5  # besides the model's own choice
COST_LIMIT = 2.5  # times the cheapest: the model is not wrong by more than that
DISTANCE = 1.0  # doublings and halvings between two tiles that are measured


def tile_candidates(shape: KernelShape, target: Target, threads: int) -> list[Choice]:
    """The model's own choice first; nothing else for a kernel too small to be measured.

    threads: of the program. The model ranks for the cores of the target, and for these.
    """
    own = choose_tile(shape, target)
    if not cached_tiles.is_worth_sharing(shape):
        return [own]
    tiles = all_tiles(shape, whole=shape.reductions)
    picked = [own.tile]
    rankings = [
        _cheapest(cached_tiles.cycles(shape, tiles, replace(target, cores=cores)))
        for cores in sorted({target.cores, threads})
    ]
    for row in _alternately(rankings):
        tile = tuple(int(size) for size in tiles[row])
        if all(_distance(tile, other) >= DISTANCE for other in picked):
            picked.append(tile)
        if len(picked) > TILES:
            break
    found = [own, *(cached_choice(shape, tile, target) for tile in picked[1:])]
    if threads > 1 and own.parallel:
        found.append(replace(own, parallel=False))
    return found


def _cheapest(costs: np.ndarray) -> list[int]:
    """Rows by ascending cost, up to the limit."""
    order = np.argsort(costs, kind="stable")
    return [int(row) for row in order if costs[row] <= COST_LIMIT * costs[order[0]]]


def _alternately(rankings: Sequence[Sequence[int]]) -> list[int]:
    longest = max(map(len, rankings))
    return [ranking[i] for i in range(longest) for ranking in rankings if i < len(ranking)]


def _distance(one: Sequence[int], other: Sequence[int]) -> float:
    return sum(abs(log2(a / b)) for a, b in zip(one, other, strict=True))
