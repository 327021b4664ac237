"""Faults of programs are errors that name the op, the buffer and the numbers, in both modes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import programs as p
import pytest

from mlir_npu.dialect.target import load_target, target_of
from mlir_npu.passes.kernels.walk import kernels
from mlir_npu.simulator.errors import SimulationError
from mlir_npu.simulator.functional import run_function
from mlir_npu.simulator.simulate import UnsupportedTarget, simulate_kernel, simulate_module

EDGE = load_target("edge")


def time_it(module) -> None:
    (kernel,) = kernels(module.operation)
    simulate_kernel(module.operation, kernel, target_of(module.operation))


def run_it(module) -> None:
    run_function(
        module.operation, "kernel", [np.ones((8, 8), np.float32)], [np.empty((8, 8), np.float32)]
    )


def program(*lines: str, **target):
    buffers = (p.alloc("a", "8x8"), p.alloc("b", "8x8"))
    return p.kernel({"x": "8x8", "y": "8x8"}, *buffers, *lines, **target)


LOAD, STORE = p.load("x", "a", "8x8", "t"), p.store("b", "y", "8x8", "s")
NEGATE = p.negate("a", "b", "8x8")
FAULTS = {
    "compute reads what a move still writes": (
        [LOAD, NEGATE, p.wait("t"), STORE, p.wait("s")],
        r"'npu.eltwise': race: touches sram buffer %alloc \(8x8, bytes 0 to 256\) while the move "
        r"of .* writes sram buffer %alloc",
    ),
    "compute writes what a move still reads": (
        [LOAD, p.wait("t"), NEGATE, STORE, p.negate("a", "b", "8x8"), p.wait("s")],
        r"'npu.eltwise': race: touches sram buffer %alloc_0 .* while the move of .* reads sram",
    ),
    "compute overwrites what a move still writes": (
        [p.fill("b", "8x8", p.SRAM), LOAD, p.fill("a", "8x8", p.SRAM), p.wait("t"), STORE]
        + [p.wait("s")],
        "'npu.fill': race: touches sram buffer %alloc ",
    ),
    "a move that is never waited for": (
        [LOAD, p.wait("t"), NEGATE, STORE],
        r"'npu.dma_start': the move from sram buffer %alloc_0 .* is never waited for \(1 such",
    ),
    "a token waited for twice": (
        [LOAD, p.wait("t"), p.wait("t"), NEGATE, STORE, p.wait("s")],
        "'npu.dma_wait': waits a second time for the move of",
    ),
    "an op that nobody knows": (
        [LOAD, p.wait("t"), "%c = arith.constant 1.0 : f32", "%d = math.exp %c : f32"],
        "'math.exp': the simulator does not know this op",
    ),
}


@pytest.mark.parametrize("execute", [time_it, run_it])
@pytest.mark.parametrize("name", FAULTS)
def test_fault(name, execute):
    lines, message = FAULTS[name]
    with pytest.raises(SimulationError, match=message):
        execute(program(*lines))


@pytest.mark.parametrize("execute", [time_it, run_it])
def test_reading_what_a_move_reads_is_no_race(execute):
    again = p.negate("b", "a", "8x8")
    execute(program(LOAD, p.wait("t"), NEGATE, STORE, again, p.wait("s")))


@pytest.mark.parametrize("execute", [time_it, run_it])
def test_moves_wait_for_moves(execute):
    """A load into a buffer whose store is under way is held by the machine, and comes after it."""
    load = p.load("x", "b", "8x8", "u")
    execute(program(LOAD, p.wait("t"), NEGATE, STORE, load, p.wait("s", "u")))


def test_moves_that_conflict_run_one_after_the_other():
    # a load of 256 bytes: 100 + 8; negate: 1; store to 108 + 1 + 108; then the load into %b
    load = p.load("x", "b", "8x8", "u")
    module = program(LOAD, p.wait("t"), NEGATE, STORE, load, p.wait("s", "u"))
    assert simulate_module(module.operation).cycles == 108 + 1 + 108 + 108


def test_a_late_store_delivers_before_its_source_is_loaded_again():
    load = p.load("x", "b", "8x8", "u")
    module = program(LOAD, p.wait("t"), NEGATE, STORE, load, p.wait("s", "u"))
    result = np.empty((8, 8), np.float32)
    (moves,) = run_function(module.operation, "kernel", [np.ones((8, 8), np.float32)], [result])
    assert (result == -1).all()
    assert (moves == 1).all()


def test_what_no_move_delivered_is_not_a_number():
    module = p.kernel(
        {"x": "8x8", "y": "8x8"},
        p.alloc("a", "8x8"),
        p.alloc("b", "8x8"),
        NEGATE,
        STORE,
        p.wait("s"),
    )
    result = np.empty((8, 8), np.float32)
    run_function(module.operation, "kernel", [np.ones((8, 8), np.float32)], [result])
    assert np.isnan(result).all()


def test_memory_exceeded():
    small = replace(EDGE, sram=replace(EDGE.sram, bytes=400))
    with pytest.raises(SimulationError, match="512 bytes of buffers are live in sram .* has 400"):
        time_it(program(LOAD, p.wait("t"), NEGATE, STORE, p.wait("s"), target=small))


def test_move_of_too_many_dimensions():
    short = replace(EDGE, dma=replace(EDGE.dma, max_rank=1))
    box = (
        "%box = memref.subview %x[0, 0] [4, 4] [1, 1] : memref<8x8xf32> to "
        "memref<4x4xf32, strided<[8, 1]>>",
        p.alloc("c", "4x4"),
        '%t = "npu.dma_start"(%box, %c) {permutation = array<i64: 0, 1>} : '
        f"(memref<4x4xf32, strided<[8, 1]>>, {p.memref('4x4', p.SRAM)}) -> !npu.token",
        p.wait("t"),
    )
    with pytest.raises(SimulationError, match="has 2 dimensions, the DMA of 'edge' does at most 1"):
        time_it(program(*box, target=short))


def test_box_outside_of_its_buffer():
    lines = (
        "%c6 = arith.constant 6 : index",
        "%box = memref.subview %x[%c6, 0] [4, 8] [1, 1] : memref<8x8xf32> to "
        "memref<4x8xf32, strided<[8, 1], offset: ?>>",
    )
    with pytest.raises(
        SimulationError, match=r"\[6, 9\] of dimension 0 is outside of the extent 8 of dram buffer"
    ):
        time_it(program(*lines))


@pytest.mark.parametrize(
    "target, cause", [("host", "has caches"), (replace(EDGE, cores=2), "has 2 cores")]
)
def test_targets_that_are_not_simulated(target, cause):
    with pytest.raises(UnsupportedTarget, match=f"{cause}.*--target edge"):
        simulate_module(program(LOAD, p.wait("t"), target=target).operation)
