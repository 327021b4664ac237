"""Tile choice: what is chosen fits, is explained, and is the cheapest by its own model."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_footprint import conv

from mlir_npu.dialect.target import Target, load_target
from mlir_npu.passes.analysis import pipeline_cost
from mlir_npu.passes.analysis.footprint import Access, Compute, KernelShape, Loop, footprint
from mlir_npu.passes.analysis.tile_choice import MODES, DoesNotFit, choose_tile
from mlir_npu.passes.analysis.tile_grid import MOST_TILES, all_tiles
from mlir_npu.passes.analysis.tile_orders import groups, orders
from mlir_npu.passes.analysis.tile_work import tile_work

EDGE = load_target("edge")


def with_memory(target: Target, sram: int, acc: int | None = None) -> Target:
    acc = target.acc.bytes if acc is None else acc
    return replace(
        target, sram=replace(target.sram, bytes=sram), acc=replace(target.acc, bytes=acc)
    )


ROOMY = with_memory(EDGE, 1 << 40, 1 << 40)


def elementwise(*extents: int, bodies: int = 1) -> KernelShape:
    loops = tuple(Loop(f"d{i}", n) for i, n in enumerate(extents))
    dims = tuple(((i, 1),) for i in range(len(extents)))
    accesses = (Access("in", dims, 4), Access("out", dims, 4, written=True))
    computes = (Compute("vector", tuple(range(len(extents))), bodies),)
    return KernelShape(loops, accesses, operations=bodies, computes=computes)


@st.composite
def kernel_shapes(draw) -> KernelShape:
    """Contractions and elementwise kernels with operands that index some of the loops."""
    parallel, reduced = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    extents = draw(
        st.lists(st.integers(1, 48), min_size=parallel + reduced, max_size=parallel + reduced)
    )
    loops = tuple(Loop(f"d{i}", n, reduction=i >= parallel) for i, n in enumerate(extents))
    everywhere, out = tuple(range(parallel + reduced)), tuple(range(parallel))
    accesses = [Access("out", tuple(((i, 1),) for i in out), 4, written=True)]
    for number in range(draw(st.integers(1, 3))):
        used = [i for i in everywhere if draw(st.booleans())]
        scale = draw(st.integers(1, 2))
        accesses.append(Access(f"in {number}", tuple(((i, scale),) for i in used), 4))
    if reduced:
        accesses.append(Access("acc", tuple(((i, 1),) for i in out), 4, "acc", moved=False))
    computes = [Compute("vector", everywhere, draw(st.integers(0, 3)))]
    if reduced and draw(st.booleans()):
        computes = [Compute("matrix", everywhere), Compute("vector", out, 1)]
        columns, rows = (parallel - 1,), everywhere[parallel:]
        return KernelShape(
            loops, tuple(accesses), "matrix", rows, columns, computes=tuple(computes)
        )
    return KernelShape(loops, tuple(accesses), computes=tuple(computes))


def copies_of(shape: KernelShape, choice) -> dict[str, int]:
    """How many buffers the operands have, from first principles."""
    trips = [loop.extent // size for loop, size in zip(shape.loops, choice.tile)]
    nest = [i for i in (*choice.order, *shape.reductions) if trips[i] > 1]
    copies = {}
    for access in shape.accesses:
        again = any(access.depends_on(loop) for loop in nest)
        if access.space == "acc":
            again = any(trips[loop] > 1 for loop in shape.parallel)
            copies[access.name] = choice.acc_buffers if again else 1
        else:
            copies[access.name] = choice.buffers if again else 1
    return copies


@settings(max_examples=60, deadline=None)
@given(
    kernel_shapes(), st.integers(600, 60_000), st.integers(600, 9_000), st.sampled_from(MODES[:2])
)
def test_what_is_chosen_fits(shape, sram, acc, mode):
    target = with_memory(EDGE, sram, acc)
    try:
        choice = choose_tile(shape, target, mode)
    except DoesNotFit as error:
        assert error.needed > error.available
        return
    alignments = {"sram": target.sram.alignment, "acc": target.acc.alignment}
    found = footprint(shape, choice.tile, alignments, copies_of(shape, choice))
    assert (choice.sram_bytes, choice.acc_bytes) == (found.bytes("sram"), found.bytes("acc"))
    assert choice.sram_bytes <= sram and choice.acc_bytes <= acc
    assert all(extent % size == 0 for size, extent in zip(choice.tile, shape.extents))
    assert sorted(choice.order) == list(shape.parallel)
    assert choice.buffers == 2 or (mode == "serial") or choice.acc_buffers == 1
    assert choice.acc_buffers <= choice.buffers <= (1 if mode == "serial" else 2)


@settings(max_examples=40, deadline=None)
@given(kernel_shapes(), st.integers(2_000, 60_000))
def test_pipelining_never_costs(shape, sram):
    target = with_memory(EDGE, sram)
    try:
        serial = choose_tile(shape, target, "serial")
    except DoesNotFit:
        return
    assert 0 < choose_tile(shape, target).cycles <= serial.cycles


@settings(max_examples=25, deadline=None)
@given(kernel_shapes(), st.integers(2_000, 60_000))
def test_it_is_the_cheapest_of_all_orders_and_buffers(shape, sram):
    """Compared with a search that leaves no order out."""
    target = with_memory(EDGE, sram)
    tiles = all_tiles(shape, any_size=True)
    work = tile_work(shape, tiles, target)
    best = np.iinfo(np.int64).max
    for order in itertools.permutations(shape.parallel):
        counts = pipeline_cost.move_counts(shape, work.trips, order)
        busy = pipeline_cost.occupancy(shape, work, counts, 1)
        for buffers, acc in ((1, 1), (2, 1), (2, 2)):
            cycles = pipeline_cost.serial_cycles(busy)
            if buffers == 2:
                cycles = pipeline_cost.pipelined_cycles(shape, work, counts, busy, acc, 1)
            in_sram, in_acc = pipeline_cost.memory(shape, work, counts, buffers, acc)
            fits = (in_sram <= target.sram.bytes) & (in_acc <= target.acc.bytes)
            best = min([best, *cycles[fits]])
    try:
        assert choose_tile(shape, target).cycles == best
    except DoesNotFit:
        assert best == np.iinfo(np.int64).max


def test_a_kernel_that_gains_nothing_from_tiles_stays_whole():
    choice = choose_tile(elementwise(8, 16), EDGE)
    assert choice.tile == (8, 16) and choice.bound == "nothing: untiled" and not choice.parallel
    assert (choice.order, choice.buffers, choice.acc_buffers) == ((0, 1), 1, 1)


def test_a_larger_kernel_is_tiled_to_overlap_moves():
    choice = choose_tile(elementwise(512, 512), ROOMY)
    assert choice.buffers == 2 and choice.tile != (512, 512) and choice.bound.startswith("dma ")


def test_a_reduction_is_split_when_that_is_cheaper():
    """The weights of 512 input channels do not fit beside a second buffer of them."""
    loops = tuple(
        Loop(name, n, reduction=name in "rsc", forced=64 if name == "ki" else None)
        for name, n in {"y": 7, "x": 7, "ko": 8, "ki": 64, "r": 3, "s": 3, "c": 512}.items()
    )
    small = replace(conv(), loops=loops)
    choice = choose_tile(small, EDGE)
    assert choice.tile[6] < 512 and choice.tile[4:6] == (3, 3)
    assert choice.order[0] == 2 and choice.bound == "matrix unit"
    assert choice.cycles < 1.05 * small.points() / 256


def test_the_bound_names_the_memory_with_numbers():
    choice = choose_tile(conv(), with_memory(EDGE, 12_000, 2_048))
    assert choice.bound.startswith(("sram: tile ", "acc: tile ")) and " of " in choice.bound


@pytest.mark.parametrize(
    ("shape", "bound"),
    [
        (conv(), "matrix unit"),
        (elementwise(256, 256, bodies=40), "vector unit"),
        (replace(elementwise(256, 256), accesses=elementwise(256, 256).accesses[1:]), "dma out"),
        (replace(elementwise(256, 256), accesses=elementwise(256, 256).accesses[:1]), "dma in"),
    ],
)
def test_the_bound_is_the_busiest_unit_where_memory_is_plenty(shape, bound):
    assert choose_tile(shape, ROOMY).bound == bound


def test_untiled_leaves_everything_whole_whatever_it_needs():
    choice = choose_tile(conv(), with_memory(EDGE, 64, 64), "untiled")
    assert choice.tile == conv().extents and choice.bound == "nothing: untiled"
    assert choice.sram_bytes > 64 and (choice.buffers, choice.acc_buffers) == (1, 1)
    forced = Loop("g", 4, forced=1)
    grouped = replace(conv(), loops=(forced, *conv().loops[1:]))
    assert choose_tile(grouped, EDGE, "untiled").tile[0] == 1


def test_a_part_of_a_vector_is_a_tile_like_any_other():
    loops = (Loop("i", 4096, granule=64),)
    access = Access("in", (((0, 1),),), 4)
    shape = KernelShape(loops, (access,))
    assert choose_tile(shape, with_memory(EDGE, 128), "serial").tile == (32,)


def test_a_few_channels_of_a_whole_image_load_no_row_twice():
    """A depthwise convolution of 32 channels, half of the lanes: rows or columns would overlap."""
    extents = {"n": 2, "y": 37, "x": 29, "c": 32, "r": 3, "s": 3}
    loops = tuple(
        Loop(name, n, reduction=name in "rs", granule=64 if name == "c" else 1)
        for name, n in extents.items()
    )
    y, x = ((1, 1), (4, 1)), ((2, 1), (5, 1))
    accesses = (
        Access("image", (((0, 1),), y, x, ((3, 1),)), 4, image=((0, 2), (1, 37), (1, 29), (0, 32))),
        Access("weights", (((4, 1),), ((5, 1),), ((3, 1),)), 4),
        Access("sum", tuple(((i, 1),) for i in range(4)), 4, "acc", moved=False),
        Access("result", tuple(((i, 1),) for i in range(4)), 4, written=True),
    )
    computes = (Compute("window", tuple(range(6))), Compute("vector", tuple(range(4)), 0))
    choice = choose_tile(KernelShape(loops, accesses, computes=computes), EDGE)
    assert choice.tile[1:3] == (37, 29) and choice.tile[3] < 32


def test_too_small_a_memory_is_refused_with_numbers():
    with pytest.raises(DoesNotFit) as error:
        choose_tile(conv(), with_memory(EDGE, 100))
    assert error.value.memory == "sram" and error.value.available == 100
    assert f"needs {error.value.needed} of 100 bytes of sram; largest buffers:" in str(error.value)


def test_orders_that_cost_the_same_are_tried_once():
    shape = conv()  # y and x index the same operands, ko others
    assert list(orders(shape, (0, 1, 2))) == [
        (0, 1, 2, 3), (0, 2, 1, 3), (1, 2, 0, 3), (2, 0, 1, 3)
    ]  # fmt: skip
    assert list(orders(shape, (2,))) == [(2, 0, 1, 3)]
    assert list(orders(shape, ())) == [(0, 1, 2, 3)]


def test_too_many_tiles_are_thinned_out_but_keep_the_extremes():
    shape = elementwise(720, 720, 720, 720)  # 30 divisors each
    tiles = all_tiles(shape)
    assert 50_000 < len(tiles) <= MOST_TILES
    assert tiles[0].tolist() == [720] * 4 and tiles[-1].tolist() == [1] * 4
    assert len(all_tiles(elementwise(720, 720))) == 30 * 30


def test_groups_hold_every_tile_once_with_its_split_loops():
    trips = np.array([[1, 1, 1, 1, 1, 1, 2], [2, 1, 4, 1, 1, 1, 1], [1, 1, 1, 1, 3, 1, 1]])
    assert [(loops, rows.tolist()) for loops, rows in groups(conv(), trips)] == [
        ((), [0, 2]),
        ((0, 2), [1]),
    ]
