"""The cost model against numbers worked out by hand on a machine with round figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_npu.dialect.target import Dma, MacsPerCell, MatrixUnit, load_target
from mlir_npu.passes.analysis import pipeline_cost as cost
from mlir_npu.passes.analysis.footprint import Access, Compute, KernelShape, Loop
from mlir_npu.passes.analysis.tile_grid import all_tiles, moved_bytes
from mlir_npu.passes.analysis.tile_work import tile_work

# a move of n bytes takes 10 + n / 4 cycles; 4 x 4 cells; 8 lanes
MACHINE = replace(
    load_target("edge"),
    matrix=MatrixUnit(4, 4, MacsPerCell(f32=1, f16=1, i8=4)),
    vector=replace(load_target("edge").vector, lanes=8),
    dma=Dma(channels=1, setup_cycles=10, bytes_per_cycle=4, max_rank=4),
)

# C[m, n] = A[m, k] B[k, n] over 32 x 16 x 64, drained by one scalar op; loops m, n, k
OPERANDS = (
    Access("A", (((0, 1),), ((2, 1),)), 4),
    Access("B", (((2, 1),), ((1, 1),)), 4),
    Access("sum", (((0, 1),), ((1, 1),)), 4, "acc", moved=False),
    Access("C", (((0, 1),), ((1, 1),)), 4, written=True),
)
MATMUL = KernelShape(
    (Loop("m", 32), Loop("n", 16), Loop("k", 64, reduction=True)),
    OPERANDS,
    "matrix",
    rows=(2,),
    columns=(1,),
    computes=(Compute("matrix", (0, 1, 2)), Compute("vector", (0, 1), 1)),
)


def work_of(*tile: int, shape: KernelShape = MATMUL) -> cost.TileWork:
    return tile_work(shape, np.array([tile]), MACHINE)


def counts_of(tile, order, shape: KernelShape = MATMUL) -> dict[str, int]:
    counts = cost.move_counts(shape, work_of(*tile, shape=shape).trips, order)
    return {access.name: int(count[0]) for access, count in zip(shape.accesses, counts)}


def test_work_of_a_tile():
    work = work_of(8, 8, 32)
    # one step: 8 rows x (32/4 row blocks) x (8/4 column blocks) + 8 fill; two steps; clear 64 / 16
    assert work.matrix[0] == 2 * (8 * 8 * 2 + 8) + 4
    assert work.vector[0] == 8  # 64 points in 8 lanes
    assert work.last_step[0] == 136 + 8
    # A 8x32, B 32x8, C 8x8 elements of 4 bytes, one element a cycle
    assert [int(move[0]) for move in work.moves] == [266, 266, 0, 74]
    assert [int(size[0]) for size in work.sizes] == [1024, 1024, 256, 256]


def test_rates_follow_the_element_type():
    bytes_, floats = (replace(MATMUL, factor_type=kind) for kind in ("i8", "f32"))
    matrix = [int(work_of(8, 8, 32, shape=shape).matrix[0]) for shape in (bytes_, floats)]
    assert matrix == [2 * (8 * 2 * 2 + 8) + 4, 2 * (8 * 8 * 2 + 8) + 4]


@pytest.mark.parametrize(
    ("tile", "order", "counts"),
    [
        ((32, 16, 64), (0, 1), {"A": 1, "B": 1, "sum": 1, "C": 1}),
        ((8, 8, 64), (0, 1), {"A": 4, "B": 8, "sum": 8, "C": 8}),
        ((8, 8, 64), (1, 0), {"A": 8, "B": 2, "sum": 8, "C": 8}),
        ((8, 16, 64), (0, 1), {"A": 4, "B": 1, "sum": 4, "C": 4}),
        ((8, 8, 32), (1, 0), {"A": 16, "B": 16, "sum": 8, "C": 8}),
        ((32, 16, 16), (0, 1), {"A": 4, "B": 4, "sum": 1, "C": 1}),
    ],
)
def test_how_often_operands_are_moved(tile, order, counts):
    assert counts_of(tile, order) == counts


def bytes_of(tile, order, buffers, acc_buffers) -> tuple[int, int]:
    work = work_of(*tile)
    counts = cost.move_counts(MATMUL, work.trips, order)
    sram, acc = cost.memory(MATMUL, work, counts, buffers, acc_buffers)
    return int(sram[0]), int(acc[0])


def test_only_what_is_moved_again_has_copies():
    # rows of 8: A 2048 B twice, B 4096 B once, C 512 B twice, sum 512 B
    assert bytes_of((8, 16, 64), (0, 1), 2, 1) == (2 * 2048 + 4096 + 2 * 512, 512)
    assert bytes_of((8, 16, 64), (0, 1), 2, 2) == (2 * 2048 + 4096 + 2 * 512, 1024)
    assert bytes_of((8, 16, 64), (0, 1), 1, 1) == (2048 + 4096 + 512, 512)
    assert bytes_of((32, 16, 64), (0, 1), 2, 2) == (8192 + 4096 + 2048, 2048)


def cycles_of(tile, order, acc_buffers, shape=MATMUL, channels=1) -> tuple[int, int]:
    """Serial and pipelined."""
    work = work_of(*tile, shape=shape)
    counts = cost.move_counts(shape, work.trips, order)
    busy = cost.occupancy(shape, work, counts, channels)
    pipelined = cost.pipelined_cycles(shape, work, counts, busy, acc_buffers, channels)
    return int(cost.serial_cycles(busy)[0]), int(pipelined[0])


def test_cycles_where_compute_takes_longest():
    # per tile of 8 rows: matrix 8 * 16 * 4 + 8 + 8 = 528, drain 16; loads A 522, B 1034 once; C 138
    serial, pipelined = cycles_of((8, 16, 64), (0, 1), 1)
    assert serial == 4 * (528 + 16 + 522 + 138) + 1034
    assert pipelined == 1034 + 522 + 4 * (528 + 16) + 138
    _, overlapped = cycles_of((8, 16, 64), (0, 1), 2)
    assert overlapped == 1034 + 522 + 4 * 528 + 16 + 138


def test_cycles_where_loads_take_longest():
    # slices of 8 channels: loads 266 + 138, compute 32 * 2 * 4 + 8 = 264
    serial, pipelined = cycles_of((32, 16, 8), (0, 1), 1)
    stored, drain, clear = 522, 64, 32
    assert serial == 8 * (266 + 138 + 264) + clear + drain + stored
    assert pipelined == 8 * (266 + 138) + 264 + drain + stored


def test_a_kernel_of_one_tile_overlaps_nothing():
    serial, pipelined = cycles_of((32, 16, 64), (0, 1), 2)
    assert serial == pipelined


def test_a_load_in_an_outer_loop_holds_back_the_inner_ones():
    # columns of 8 outside, rows of 2 inside: B 522 twice; A 138, compute 2 * 16 * 2 + 8 + 1 + 2
    # leave 73 + 2 - 138 cycles beside A, so that B is waited for in full, and more
    work = work_of(2, 8, 64)
    counts = cost.move_counts(MATMUL, work.trips, (1, 0))
    compute = np.array([75 * 32])
    assert int(cost._stalls(MATMUL, work, counts, compute)[0]) == 522 - (75 - 138)
    slow = np.array([700 * 32])
    assert int(cost._stalls(MATMUL, work, counts, slow)[0]) == 0


def test_channels_share_the_moves():
    narrow, wide = (cycles_of((32, 16, 8), (0, 1), 1, channels=n)[1] for n in (1, 2))
    assert wide < narrow


def test_padding_is_not_moved():
    """A row of 8 with one zero at each end, for 8 outputs of 3 taps."""
    loops = (Loop("x", 8), Loop("s", 3, reduction=True))
    access = Access("row", (((0, 1), (1, 1)),), 4, image=((1, 8),))
    shape = KernelShape(loops, (access,))
    # whole: 8; halves: 5 and 5; single outputs: 2, 3 six times, 2; single taps: 7, 8, 7
    tiles = np.array([[8, 3], [4, 3], [1, 3], [8, 1]])
    expected = [8 * 4, 5 * 4, np.ceil(22 / 8 * 4), np.ceil(22 / 3 * 4)]
    assert moved_bytes(shape, access, tiles).tolist() == expected


@given(*[st.integers(1, 6)] * 2, *[st.integers(1, 3)] * 2, *[st.integers(0, 4)] * 2)
def test_bytes_of_padded_moves_are_the_mean_over_all_tiles(
    outputs, taps, stride, dilation, low, cut
):
    """Compared with counting; `cut` elements at the end are padding."""
    padded = (outputs - 1) * stride + (taps - 1) * dilation + 1
    extent = padded - low - cut
    if extent < 1:
        return
    loops = (Loop("x", outputs), Loop("s", taps, reduction=True))
    access = Access("row", (((0, stride), (1, dilation)),), 1, image=((low, extent),))
    shape = KernelShape(loops, (access,))
    tiles = all_tiles(shape)
    is_data = np.zeros(padded, bool)
    is_data[low : low + extent] = True
    for (size, window), found in zip(tiles, moved_bytes(shape, access, tiles)):
        span = (size - 1) * stride + (window - 1) * dilation + 1
        counts = [
            is_data[x * stride + s * dilation :][:span].sum()
            for x in range(0, outputs, size)
            for s in range(0, taps, window)
        ]
        assert found == np.ceil(np.mean(counts) - 1e-9)


def test_what_stays_on_chip_is_neither_moved_nor_copied():
    inner = Access("intermediate", (((0, 1),), ((1, 1),)), 4, moved=False)
    shape = replace(MATMUL, accesses=(*OPERANDS, inner))
    work = work_of(8, 8, 64, shape=shape)
    counts = cost.move_counts(shape, work.trips, (0, 1))
    with_it = cost.memory(shape, work, counts, 2, 2)[0] - cost.memory(MATMUL, work, counts, 2, 2)[0]
    assert int(with_it[0]) == 256 and int(work.moves[-1][0]) == 0
