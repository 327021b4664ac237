"""Cycles of small programs, computed by hand in the comments.

The target is `edge`: 16 x 16 cells, 64 lanes, a channel each way of 100 cycles + 32 bytes a cycle.
"""

from __future__ import annotations

from dataclasses import replace

import programs as p

from mlir_npu.dialect.target import load_target, target_of
from mlir_npu.passes.kernels.walk import kernels
from mlir_npu.simulator.result import KernelRun
from mlir_npu.simulator.simulate import simulate_kernel

EDGE = load_target("edge")


def timed(module) -> KernelRun:
    (kernel,) = kernels(module.operation)
    return simulate_kernel(module.operation, kernel, target_of(module.operation))


def load_compute_store():
    """y = -x, whole."""
    return p.kernel(
        {"x": "64x32", "y": "64x32"},
        p.alloc("a", "64x32"),
        p.alloc("b", "64x32"),
        p.load("x", "a", "64x32", "t"),
        p.wait("t"),
        p.negate("a", "b", "64x32"),
        p.store("b", "y", "64x32", "s"),
        p.wait("s"),
    )


def test_load_compute_store():
    # load and store of 64 * 32 * 4 = 8192 bytes: 100 + 256 = 356 each
    # 2048 points / 64 lanes * 1 op = 32; 356 + 32 + 356 = 744
    run = timed(load_compute_store())
    assert run.cycles == 744
    assert dict(run.busy) == {"dma in": 356, "vector": 32, "dma out": 356}
    # every byte once: 8192 / 32 = 256 cycles, the vector unit needs 32
    assert (run.bounded_by, run.bound) == ("dma in", 256)


def test_serial_convolution_with_fill_and_drain():
    # fill: 256 / 256 = 1, at once; image: 1 * 6 * 6 * 16 * 4 = 2304 bytes, 100 + 72 = 172
    # weights: 9 * 16 * 16 * 4 = 9216 bytes, 100 + 288 = 388; they arrive at 560
    # conv: 16 pixels * 9 taps * 1 * 1 + 32 = 176, to 736; drain: 256 / 64 * 1 = 4, to 740
    # store: 1024 bytes, 100 + 32 = 132, to 872
    run = timed(
        p.kernel(
            {"x": "1x6x6x16", "w": "1x3x3x16x16", "y": "1x4x4x1x16"},
            p.alloc("image", "1x6x6x16"),
            p.alloc("weights", "1x3x3x16x16"),
            p.alloc("acc", "1x4x4x1x16", p.ACC),
            p.alloc("out", "1x4x4x1x16"),
            p.fill("acc", "1x4x4x1x16"),
            p.load("x", "image", "1x6x6x16", "t"),
            p.wait("t"),
            p.load("w", "weights", "1x3x3x16x16", "u"),
            p.wait("u"),
            '"npu.conv2d"(%image, %weights, %acc) {strides = array<i64: 1, 1>, '
            "dilations = array<i64: 1, 1>} : "
            f"({p.memref('1x6x6x16', p.SRAM)}, {p.memref('1x3x3x16x16', p.SRAM)}, "
            f"{p.memref('1x4x4x1x16', p.ACC)}) -> ()",
            p.drain("acc", "out", "1x4x4x1x16"),
            p.store("out", "y", "1x4x4x1x16", "s"),
            p.wait("s"),
        )
    )
    assert run.cycles == 872
    assert run.busy["matrix"] == 1 + 176
    assert run.macs == 16 * 9 * 16 * 16
    assert run.bound == max(144, (2304 + 9216) / 32)  # all macs / 256, bytes in


def test_double_buffered_loop_that_computes_longer_than_it_moves():
    # rhs: 4 * 64 * 16 * 4 = 16384 bytes, 100 + 512 = 612, [0, 612]
    # a tile in and a tile out are 64 * 64 * 4 = 16384 bytes too
    # fill: 4096 / 256 = 16; matmul: 64 * (64 / 16) * (64 / 16) + 32 = 1056; drain: 4096 / 64 = 64
    # load0 [612, 1224], fill0 to 1240, matmul0 to 2296, drain0 to 2360, store0 to 2972
    # load1 [1224, 1836]; load2 waits for matmul0 to leave its buffer: [2296, 2908]
    # fill1 waits for drain0: [2360, 2376], matmul1 to 3432, drain1 to 3496
    # fill2 [3496, 3512], matmul2 to 4568, drain2 to 4632, store2 to 5244
    compute = [
        p.fill("acc", "64x4x16"),
        p.matmul("cur", "weights", "acc", 64, 64, 4, 16),
        p.drain("acc", "o", "64x4x16"),
    ]
    before = [
        p.alloc("weights", "4x64x16"),
        p.alloc("acc", "64x4x16", p.ACC),
        p.load("w", "weights", "4x64x16", "tw"),
        p.wait("tw"),
    ]
    loop = p.double_buffered(3, "64x64", "\n".join(compute), before, "64x4x16")
    run = timed(p.kernel({"w": "4x64x16", "x": "3x64x64", "y": "3x64x4x16"}, loop))
    assert run.cycles == 5244
    matrix = [(e.start, e.end) for e in run.events if e.unit == "matrix" and e.name == "matmul"]
    assert matrix == [(1240, 2296), (2376, 3432), (3512, 4568)]
    loads = [(e.start, e.end) for e in run.events if e.unit == "dma in"]
    assert loads == [(0, 612), (612, 1224), (1224, 1836), (2296, 2908)]
    # roofline: 3 * 64 * 64 * 64 / 256; lost: both first loads, two drains that a fill waits for,
    # 32 and 16 cycles of three tiles each, and the last drain and store
    assert run.bound == 3072
    assert run.losses() == {
        "first load": 1224,
        "last store": 676,
        "waits for the vector unit": 128,
        "pipeline fill": 96,
        "clearing accumulators": 48,
    }
    assert run.cycles - run.bound == 1224 + 676 + 128 + 96 + 48


def test_double_buffered_loop_that_is_bound_by_its_moves():
    # a tile of 32 * 64 * 4 = 8192 bytes: 356 in, 2048 / 64 = 32 to compute, 356 out
    # the loads follow each other: 4 * 356; then the last tile: 32 + 356; together 1812
    loop = p.double_buffered(4, "32x64", p.negate("cur", "o", "32x64"))
    run = timed(p.kernel({"x": "4x32x64", "y": "4x32x64"}, loop))
    assert run.cycles == 1812
    assert run.busy["dma in"] == run.busy["dma out"] == 4 * 356
    # lost to 4 * 8192 / 32 = 1024 cycles: four setups, and the end, when nothing is left to load
    assert run.bound == 1024
    assert run.losses() == {"setup of moves": 400, "last store": 388}


def two_loads(channels: int):
    return p.kernel(
        {"x": "32x32", "z": "32x8"},
        p.alloc("a", "32x32"),
        p.alloc("b", "32x8"),
        p.load("x", "a", "32x32", "t"),
        p.load("z", "b", "32x8", "u"),
        p.wait("t", "u"),
        target=replace(EDGE, dma=replace(EDGE.dma, channels=channels)),
    )


def test_two_loads_on_one_channel_follow_each_other():
    # 4096 bytes: 100 + 128 = 228; 1024 bytes: 100 + 32 = 132
    assert timed(two_loads(1)).cycles == 228 + 132


def test_two_loads_on_two_channels_run_together():
    run = timed(two_loads(2))
    assert run.cycles == 228
    assert [(e.channel, e.start) for e in run.events] == [(0, 0), (1, 0)]
    assert run.utilisation("dma in") == (228 + 132) / (2 * 228)


def test_a_copy_in_dram_holds_a_channel_of_each_direction():
    # 4096 bytes: 100 + 128
    order = "{permutation = array<i64: 0, 1>}"
    types = f"({p.memref('32x32')}, {p.memref('32x32')}) -> !npu.token"
    run = timed(
        p.kernel(
            {"x": "32x32", "y": "32x32"},
            f'%t = "npu.dma_start"(%x, %y) {order} : {types}',
            p.wait("t"),
        )
    )
    assert run.cycles == 228
    assert dict(run.busy) == {"dma in": 228, "dma out": 228}
    assert run.traffic.of("dram", "read") == run.traffic.of("dram", "written") == 4096


def test_a_padding_move_costs_the_valid_bytes_only():
    # 30 * 32 * 4 = 3840 bytes of 4096: 100 + 120 = 220
    run = timed(
        p.kernel(
            {"x": "30x32"},
            p.alloc("a", "32x32"),
            "%c1 = arith.constant 1 : index",
            "%c0 = arith.constant 0 : index",
            '%t = "npu.dma_start"(%x, %a, %c1, %c0) {permutation = array<i64: 0, 1>, '
            f"pad_value = 0.0 : f32}} : ({p.memref('30x32')}, {p.memref('32x32', p.SRAM)}, index, "
            "index) -> !npu.token",
            p.wait("t"),
        )
    )
    assert run.cycles == 220
    assert run.traffic.of("dram", "read") == 3840
    assert run.traffic.of("sram", "written") == 4096


def test_a_tile_that_is_all_padding_costs_the_setup_only():
    # the empty box stands behind the last row of %x
    run = timed(
        p.kernel(
            {"x": "30x32"},
            p.alloc("a", "4x32"),
            "%c0 = arith.constant 0 : index",
            "%c30 = arith.constant 30 : index",
            "%box = memref.subview %x[%c30, 0] [%c0, 32] [1, 1] : memref<30x32xf32> to "
            "memref<?x32xf32, strided<[32, 1], offset: ?>>",
            '%t = "npu.dma_start"(%box, %a, %c0, %c0) {permutation = array<i64: 0, 1>, '
            "pad_value = 0.0 : f32} : (memref<?x32xf32, strided<[32, 1], offset: ?>>, "
            f"{p.memref('4x32', p.SRAM)}, index, index) -> !npu.token",
            p.wait("t"),
        )
    )
    assert run.cycles == 100
    assert run.bound == 0


def test_a_barrier_holds_control_until_every_unit_is_done():
    # without it both would start at 0: fill 1024 / 64 = 16, then the load of 228
    lines = (
        p.alloc("a", "32x32"),
        p.alloc("b", "32x32"),
        p.fill("b", "32x32", p.SRAM),
        '"npu.barrier"() : () -> ()',
        p.load("x", "a", "32x32", "t"),
        p.wait("t"),
    )
    with_barrier = p.kernel({"x": "32x32"}, *lines)
    without = p.kernel({"x": "32x32"}, *(line for line in lines if "barrier" not in line))
    assert timed(with_barrier).cycles == 16 + 228
    assert timed(without).cycles == 228


def test_occupancy_follows_the_use_of_buffers():
    # a [0, 388]: from its load to the end of the compute that reads it; b [356, 744]
    run = timed(load_compute_store())
    assert run.occupancy["sram"] == [(0, 8192), (356, 16384), (388, 8192), (744, 0)]
    assert run.occupancy["acc"] == []


def test_a_channel_that_has_nothing_to_do_waits_for_the_other():
    # one load of 64 * 32 * 4 bytes: 356 cycles on one of two channels
    two = replace(EDGE, dma=replace(EDGE.dma, channels=2))
    lines = (p.alloc("a", "64x32"), p.load("x", "a", "64x32", "t"), p.wait("t"))
    run = timed(p.kernel({"x": "64x32"}, *lines, target=two))
    assert run.bounded_by == "dma in"
    assert run.losses()["end: waits for another channel"] == 356 / 2
