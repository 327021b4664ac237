"""Tile choice: what is chosen fits, is explained, and is the cheapest by its own model."""
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_footprint import conv

from mlir_npu.passes.analysis import tile_choice
from mlir_npu.passes.analysis.footprint import Access, KernelShape, Loop, footprint
from mlir_npu.passes.analysis.tile_choice import Budget, DoesNotFit, choose_tile

EDGE = Budget(
    sram_bytes=512 * 1024,
    acc_bytes=64 * 1024,
    sram_alignment=64,
    acc_alignment=64,
    cached=False,
    lanes=64,
    matrix_rows=16,
    matrix_columns=16,
    dma_setup_cycles=100,
    dma_bytes_per_cycle=32,
    cores=1,
)
CPU = replace(EDGE, sram_bytes=1 << 20, cached=True, lanes=8, cores=2, dma_setup_cycles=1)


def elementwise(*extents: int, bodies: int = 1) -> KernelShape:
    loops = tuple(Loop(f"d{i}", n) for i, n in enumerate(extents))
    dims = tuple(((i, 1),) for i in range(len(extents)))
    accesses = (Access("in", dims, 4), Access("out", dims, 4, written=True))
    return KernelShape(loops, accesses, operations=bodies)


@given(st.integers(8_000, 600_000), st.integers(1_000, 70_000))
def test_what_is_chosen_fits(sram, acc):
    budget = replace(EDGE, sram_bytes=sram, acc_bytes=acc)
    shape = conv()
    choice = choose_tile(shape, budget)
    found = footprint(shape, choice.tile, budget.alignments)
    assert (choice.sram_bytes, choice.acc_bytes) == (found.bytes("sram"), found.bytes("acc"))
    assert choice.sram_bytes <= sram and choice.acc_bytes <= acc
    assert all(extent % size == 0 for size, extent in zip(choice.tile, shape.extents))


def test_a_kernel_that_fits_stays_whole():
    choice = choose_tile(elementwise(8, 16), EDGE)
    assert choice.tile == (8, 16) and choice.bound == "nothing: untiled" and not choice.parallel


def test_the_bound_names_the_memory_with_numbers():
    choice = choose_tile(conv(), EDGE)
    assert choice.bound.startswith(("sram: tile ", "acc: tile ")) and " of " in choice.bound
    roomy = choose_tile(conv(), replace(EDGE, sram_bytes=1 << 30, acc_bytes=1 << 30))
    assert roomy.bound == "nothing: untiled"


def test_reductions_are_split_only_when_nothing_else_fits():
    assert choose_tile(conv(), EDGE).tile[4:] == (3, 3, 64)
    tight = choose_tile(conv(), replace(EDGE, sram_bytes=30_000, acc_bytes=2_000))
    assert tight.tile[4:] != (3, 3, 64)


def test_it_is_the_cheapest_that_fits():
    tiles = tile_choice.candidates(conv(), reductions_split=False, any_size=False)
    sram, acc = tile_choice.memory(conv(), tiles, EDGE)
    fits = (sram <= EDGE.sram_bytes) & (acc <= EDGE.acc_bytes)
    cheapest = tile_choice.cycles(conv(), tiles[fits], EDGE).min()
    chosen = np.array([choose_tile(conv(), EDGE).tile])
    assert tile_choice.cycles(conv(), chosen, EDGE)[0] == cheapest


def test_work_is_shared_out_over_the_cores_by_rows():
    choice = choose_tile(conv(), CPU)
    assert choice.parallel and choice.tile[:2] == (28, 56) and choice.bound == "cores"


def test_an_image_tile_leaves_room_in_the_cache_for_weights():
    assert choose_tile(conv(), replace(CPU, sram_bytes=1 << 19)).tile[:2] == (14, 56)


def test_little_work_is_not_shared_out():
    choice = choose_tile(elementwise(64, 64), CPU)
    assert not choice.parallel and choice.tile == (64, 64)


def test_a_cache_is_a_goal_and_no_limit():
    tiny = replace(CPU, sram_bytes=64, acc_bytes=64)
    assert choose_tile(conv(), tiny).sram_bytes > 64


def test_vectors_are_broken_when_nothing_else_fits():
    loops = (Loop("i", 4096, granule=64),)
    access = Access("in", (((0, 1),),), 4)
    shape = KernelShape(loops, (access,))
    assert choose_tile(shape, replace(EDGE, sram_bytes=128)).tile == (32,)


def test_too_small_a_memory_is_refused_with_numbers():
    with pytest.raises(DoesNotFit) as error:
        choose_tile(conv(), replace(EDGE, sram_bytes=100))
    assert error.value.memory == "sram" and error.value.available == 100
    assert f"needs {error.value.needed} of 100 bytes of sram; largest buffers:" in str(error.value)


def test_contiguous_runs():
    access = Access("a", (((0, 1),), ((1, 1),)), 4)
    tiles = np.array([[4, 8], [2, 8], [4, 4], [1, 1]])
    runs = tile_choice.contiguous_runs(access, tiles, np.array([[4, 8]]))
    assert runs.tolist() == [1, 1, 4, 1]
