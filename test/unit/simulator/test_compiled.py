"""Kernels as the compiler tiles them: never faster than the roofline, never slower than serial."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.passes.analysis.pipeline_cost import move_counts
from mlir_npu.passes.analysis.tile_grid import moved_bytes
from mlir_npu.passes.choose_tiles import SCHEDULE
from mlir_npu.passes.kernels.describe import describe
from mlir_npu.passes.kernels.walk import kernels
from mlir_npu.passes.run_stages import run_stages
from mlir_npu.simulator.check import check_module
from mlir_npu.simulator.result import ModuleRun
from mlir_npu.simulator.simulate import simulate_module
from mlir_npu.simulator.staging import SCHEDULES, WrongStage, stage_module, stage_of

sys.path.append(str(Path(__file__).parents[1] / "passes"))
from staged import kernel_text as k  # noqa: E402

SAME = k.Window((3, 3), low=(1, 1), high=(1, 1))
KERNELS = {
    "conv 3x3": k.conv2d((1, 28, 28, 32), 4, 16, SAME),
    "conv 1x1": k.conv2d((1, 14, 14, 64), 8, 16, k.Window((1, 1))),
    "conv stride 2": k.conv2d((1, 28, 28, 16), 2, 16, k.Window((3, 3), (2, 2), low=(1, 1))),
    "grouped conv": k.grouped_conv2d((1, 8, 8, 3, 4), 2, 4, SAME),
    "depthwise": k.depthwise_conv2d((1, 28, 28, 64), SAME),
    "max pool": k.pool2d((1, 28, 28, 64), k.Window((3, 3), (2, 2), low=(1, 1)), "max"),
    "matmul": k.matmul(48, 256, 8, 16),
    "mean": k.mean((1, 14, 14, 128)),
    "eltwise": k.add_relu((1, 28, 28, 64)),
    "transpose": k.transpose((1, 12, 16, 20), (0, 2, 3, 1)),
    "concat": k.concat((1, 14, 14, 32), 16),
}


def parsed(kernel: k.Kernel, target: str = "edge") -> ir.Module:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(kernel.text)
        set_target(module.operation, load_target(target))
    return module


def simulated(kernel: k.Kernel, schedule: str, target: str = "edge") -> ModuleRun:
    module = parsed(kernel, target)
    stage_module(module, schedule)
    return simulate_module(module.operation)


@pytest.mark.parametrize("target", ["edge", "small"])
@pytest.mark.parametrize("name", KERNELS)
def test_overlapped_tiles_lie_between_the_roofline_and_serial_ones(name, target):
    pipelined, serial = (simulated(KERNELS[name], s, target) for s in ("pipelined", "serial"))
    assert pipelined.bound <= pipelined.cycles <= serial.cycles
    assert pipelined.macs == serial.macs
    assert pipelined.bound == pytest.approx(serial.bound)


@pytest.mark.parametrize("name", KERNELS)
def test_losses_add_up(name):
    (run,) = simulated(KERNELS[name], "pipelined").calls
    assert sum(run.losses().values()) == pytest.approx(run.cycles - run.bound, abs=2)


@pytest.mark.parametrize("name", KERNELS)
def test_tiles_do_the_work_of_the_whole_and_move_no_less(name):
    (tiled,), (whole,) = (simulated(KERNELS[name], s).calls for s in ("pipelined", "untiled"))
    assert tiled.macs == whole.macs
    assert tiled.traffic.distinct("read") == whole.traffic.distinct("read")
    assert tiled.traffic.distinct("written") == whole.traffic.of("dram", "written")
    assert tiled.dram_bytes >= whole.dram_bytes


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", KERNELS)
def test_schedules_give_the_same_results(name, schedule):
    (check,) = check_module(parsed(KERNELS[name]), schedule)
    assert check.elements == np.prod(KERNELS[name].output)
    assert check.differing == 0


def test_occupancy_stays_within_the_memories():
    for name in ("conv 3x3", "depthwise", "eltwise"):
        (run,) = simulated(KERNELS[name], "pipelined", "small").calls
        target = load_target("small")
        assert 0 < run.peak("sram") <= target.sram.bytes
        assert run.peak("acc") <= target.acc.bytes


def test_bytes_are_those_of_the_tiles_times_their_moves():
    # image (1, 16, 16, 8), 4 blocks of 8 channels, 3x3 with padding; tiles of 8 rows and 2 blocks,
    # each operand moved for each of the 2 * 2 tiles
    tile = k.schedule((0, 8, 0, 2, 0))
    kernel = k.conv2d((1, 16, 16, 8), 4, 8, SAME, schedule=tile)
    (run,) = simulated(kernel, "pipelined").calls
    image = 9 * 16 * 8 * 4  # of 10 rows of 18 pixels one is padding, and two columns
    weights = 2 * 3 * 3 * 8 * 8 * 4
    channels = 2 * (2 * 8 * 4)  # scale and shift
    tile_bytes = 8 * 16 * 2 * 8 * 4  # residual in, result out
    assert run.traffic.of("dram", "read") == 4 * (image + weights + channels + tile_bytes)
    assert run.traffic.of("dram", "written") == 4 * tile_bytes
    loads = [event.bytes for event in run.events if event.unit == "dma in"]
    assert sorted(set(loads)) == sorted({image, weights, channels // 2, tile_bytes})


def scheduled_bytes(kernel: k.Kernel, target: str) -> tuple[int, int]:
    """Bytes read and written by the schedule alone: those of each tile times its moves."""
    module = parsed(kernel, target)
    run_stages(module, first="schedule", last="schedule")
    (function,) = kernels(module.operation)
    shape = describe(function, load_target(target).vector.lanes)
    schedule = ir.DictAttr(function.attributes[SCHEDULE])
    sizes = dict(zip(shape.parallel, schedule["tile"]))
    if "reduction_tile" in schedule:
        sizes |= dict(zip(shape.reductions, schedule["reduction_tile"]))
    tile = np.array([[sizes.get(i) or loop.extent for i, loop in enumerate(shape.loops)]])
    order = [shape.parallel[i] for i in schedule["order"]]
    counts = move_counts(shape, np.array(shape.extents) // tile, order)
    total = {False: 0, True: 0}
    for access, count in zip(shape.accesses, counts):
        if access.moved:
            total[access.written] += int(moved_bytes(shape, access, tile)[0] * count[0])
    return total[False], total[True]


@pytest.mark.parametrize("target", ["edge", "small"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("transpose", "concat")])
def test_bytes_are_those_of_the_schedule(name, target):
    read, written = scheduled_bytes(KERNELS[name], target)
    (run,) = simulated(KERNELS[name], "pipelined", target).calls
    assert run.traffic.of("dram", "written") == written
    # the schedule knows the bytes of a tile at the border on average, rounded up
    loads = sum(event.unit == "dma in" for event in run.events)
    assert 0 <= read - run.traffic.of("dram", "read") <= loads


def test_equal_kernels_are_simulated_once():
    kernel = KERNELS["eltwise"]
    call = next(line for line in kernel.text.splitlines() if "call @kernel" in line)
    second = call.replace("%0 =", "%1 =").replace("(%arg0, ", "(%0, ", 1)
    text = kernel.text.replace(call, f"{call}\n{second}").replace("return %0", "return %1")
    text = text.replace("return %result", "return %result")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        set_target(module.operation, load_target("edge"))
    stage_module(module)
    run = simulate_module(module.operation)
    assert len(run.calls) == 2
    assert run.calls[0] is run.calls[1]
    assert run.cycles == 2 * run.calls[0].cycles


def test_a_module_of_any_stage_is_taken_further():
    expected = simulated(KERNELS["conv 3x3"], "pipelined").cycles
    stages = ("schedule", "tile", "buffers", "stage", "pipeline", "allocate")
    following = ("tile", "buffers", "stage", "pipeline", "pipeline", None)
    for last, first in zip(stages, following):
        module = parsed(KERNELS["conv 3x3"])
        run_stages(module, first="schedule", last=last)
        assert stage_of(module.operation) == first
        stage_module(module)
        assert simulate_module(module.operation).cycles == expected


def test_a_schedule_comes_too_late_for_tiles():
    module = parsed(KERNELS["conv 3x3"])
    run_stages(module, first="schedule", last="stage")
    with pytest.raises(WrongStage, match="'untiled' has to be chosen in the stage 'schedule'"):
        stage_module(module, "untiled")


def test_tiles_cannot_be_compared_with_what_they_were():
    module = parsed(KERNELS["conv 3x3"])
    run_stages(module, first="schedule", last="tile")
    with pytest.raises(WrongStage, match="has no untiled form to compare with"):
        check_module(module, "pipelined")
