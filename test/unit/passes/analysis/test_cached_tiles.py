"""Tiles for a CPU: rows for every core, room for weights in the cache, no limit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from test_footprint import conv
from test_tile_choice import elementwise, with_memory

from mlir_npu.dialect.target import load_target
from mlir_npu.passes.analysis.cached_tiles import contiguous_runs
from mlir_npu.passes.analysis.footprint import Access
from mlir_npu.passes.analysis.tile_choice import choose_tile

AVX2 = load_target(Path(__file__).resolve().parents[3] / "lit" / "Inputs" / "avx2.toml")
CPU = with_memory(AVX2, 1 << 20)


def test_work_is_shared_out_over_the_cores_by_rows():
    choice = choose_tile(conv(), CPU)
    assert choice.parallel and choice.tile[:2] == (28, 56) and choice.bound == "cores"


def test_an_image_tile_leaves_room_in_the_cache_for_weights():
    assert choose_tile(conv(), with_memory(CPU, 1 << 19)).tile[:2] == (14, 56)


def test_little_work_is_not_shared_out():
    choice = choose_tile(elementwise(64, 64), CPU)
    assert not choice.parallel and choice.tile == (64, 64)
    assert not choose_tile(conv(), replace(CPU, cores=1)).parallel


def test_a_cache_is_a_goal_and_no_limit():
    assert choose_tile(conv(), with_memory(CPU, 64, 64)).sram_bytes > 64


def test_a_mode_changes_nothing_and_there_is_no_order():
    chosen = [choose_tile(conv(), CPU, mode) for mode in ("pipelined", "serial", "untiled")]
    assert chosen[0] == chosen[1] == chosen[2] and chosen[0].order is None


def test_contiguous_runs():
    access = Access("a", (((0, 1),), ((1, 1),)), 4)
    tiles = np.array([[4, 8], [2, 8], [4, 4], [1, 1]])
    runs = contiguous_runs(access, tiles, np.array([[4, 8]]))
    assert runs.tolist() == [1, 1, 4, 1]


def test_contiguous_runs_in_another_order():
    access = Access("a", (((0, 1),), ((1, 1),)), 4, order=(1, 0))
    tiles = np.array([[4, 8], [2, 8], [4, 4], [1, 1]])
    runs = contiguous_runs(access, tiles, np.array([[4, 8]]))
    assert runs.tolist() == [1, 8, 1, 1]


def test_transposed_tiles_are_small_and_an_image_tile_is_transposed_once():
    image, weights, accumulator, out = conv().accesses
    channels_first = (
        replace(image, order=(2, 0, 1)), weights, accumulator, replace(out, order=(2, 3, 0, 1))
    )  # fmt: skip
    plain = choose_tile(conv(), CPU).tile
    rows, columns, blocks, *_ = choose_tile(replace(conv(), accesses=channels_first), CPU).tile
    assert rows < plain[0] and (columns, blocks) == (56, 2)


def test_blocks_that_fill_no_vector_do_not_share_one():
    """25 blocks of 2.5 vectors: tiles of five blocks save no vector, and leave a core idle."""
    wide = {"y": 13, "x": 13, "ko": 25, "ki": 20, "r": 1, "s": 1, "c": 512}
    loops = tuple(
        replace(loop, extent=wide[loop.name], forced=20 if loop.name == "ki" else None)
        for loop in conv().loops
    )
    image, weights, *rest = conv().accesses
    put_in_order = replace(weights, order=(0, 4, 3, 1, 2))
    shape = replace(conv(), loops=loops, accesses=(image, put_in_order, *rest))
    assert choose_tile(shape, CPU).tile[2] == 1
