"""Tiles to measure: the model's own first, all of them possible, and none like another."""

from dataclasses import replace
from itertools import combinations
from math import log2

import numpy as np
import pytest
from test_footprint import conv
from test_tile_choice import elementwise

from mlir_npu.dialect.target import load_target
from mlir_npu.passes.analysis import cached_tiles
from mlir_npu.passes.analysis.tile_candidates import COST_LIMIT, DISTANCE, TILES, tile_candidates
from mlir_npu.passes.analysis.tile_choice import choose_tile

HOST = replace(load_target("host"), cores=2)
SHAPES = {"conv": conv(), "eltwise": elementwise(1, 56, 56, 64)}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_they_are_few_and_differ(name, threads):
    shape = SHAPES[name]
    own, *others = tile_candidates(shape, HOST, threads)
    assert own == choose_tile(shape, HOST)
    tiles = [choice.tile for choice in (own, *others)]
    for tile in tiles:
        assert all(loop.extent % size == 0 for loop, size in zip(shape.loops, tile, strict=True))
    distinct = list(dict.fromkeys(tiles))
    assert 2 <= len(distinct) <= 1 + TILES
    for one, other in combinations(distinct, 2):
        assert sum(abs(log2(a / b)) for a, b in zip(one, other)) >= DISTANCE


def test_none_is_hopeless_by_the_model():
    shape = SHAPES["conv"]
    tiles = np.array([choice.tile for choice in tile_candidates(shape, HOST, 2)])
    costs = cached_tiles.cycles(shape, tiles, HOST)
    assert costs.max() <= COST_LIMIT * costs[0]


def test_the_cores_may_be_too_many():
    """One of them is the model's tile on one thread, where threads are."""
    own, *others = tile_candidates(SHAPES["conv"], HOST, 2)
    assert own.parallel
    assert replace(own, parallel=False) in others
    assert all(choice.parallel == (choice.tile != SHAPES["conv"].extents)
               for choice in tile_candidates(SHAPES["conv"], HOST, 1))  # fmt: skip


def test_what_takes_no_time_is_not_measured():
    assert len(tile_candidates(elementwise(4, 4), HOST, 2)) == 1
