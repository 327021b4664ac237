"""Faults of where buffers are and of what is in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import programs as p
import pytest

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.passes.kernels.walk import kernels
from mlir_npu.simulator.errors import SimulationError
from mlir_npu.simulator.functional import run_function
from mlir_npu.simulator.simulate import simulate_kernel

EDGE = load_target("edge")
SMALL = replace(
    EDGE,
    sram=replace(EDGE.sram, bytes=512, alignment=64),
    acc=replace(EDGE.acc, bytes=512, alignment=64),
)


def placed(
    *views: tuple[str, int, str], lines=(), plan: str = "", target=SMALL, size: int = 2048
) -> None:
    """Time a kernel with views (name, byte offset, space) of 8x8 elements in its scratchpad."""
    made = []
    for name, offset, space in views:
        made += [
            f"%{name}_m = memref.memory_space_cast %m : memref<{size}xi8> to "
            f"memref<{size}xi8, {space}>",
            f"%{name}_o = arith.constant {offset} : index",
            f"%{name} = memref.view %{name}_m[%{name}_o][] : memref<{size}xi8, {space}> to "
            f"{p.memref('8x8', space)}",
        ]
    first, _, space = views[0]
    used = lines or [p.fill(first, "8x8", space)]
    text = "\n".join([*made, *used])
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(
            f"func.func @kernel(%x: {p.memref('8x8')}, %y: {p.memref('8x8')}, "
            f'%m: memref<{size}xi8> {{npu.role = "scratch"}}) attributes {{npu.kernel = "test"'
            f"{plan}}} {{\n{text}\nreturn\n}}"
        )
        set_target(module.operation, target)
    (kernel,) = kernels(module.operation)
    simulate_kernel(module.operation, kernel, target)


PLAN = ", npu.memory = {sram_bytes = 256, acc_bytes = 256, acc_start = 256}"


def test_views_within_their_memories():
    placed(("a", 256, p.SRAM))
    placed(("a", 0, p.SRAM), ("b", 256, p.ACC), plan=PLAN)
    placed(("a", 512, p.ACC), plan=PLAN)  # the second half of acc


@pytest.mark.parametrize(
    "offset, space, plan, message",
    [
        (260, p.SRAM, "", "starts at byte 260 of sram, which is no multiple of its alignment, 64"),
        (260, p.ACC, PLAN, "starts at byte 4 of acc, which is no multiple of its alignment, 64"),
        (512, p.SRAM, "", "takes the bytes 512 to 768 of sram, which has 512 bytes in 'edge'"),
        (1024, p.ACC, "", "takes the bytes 1024 to 1280 of acc"),
        (640, p.ACC, PLAN, "takes the bytes 384 to 640 of acc, which has 512 bytes"),
        (64, p.SRAM, PLAN, "takes the bytes 64 to 320 of sram, .*; acc starts at byte 256"),
        (0, p.ACC, PLAN, "takes the bytes -256 to 0 of acc"),
        (-64, p.SRAM, "", "starts at byte -64, before sram buffer"),
    ],
)
def test_views_that_cannot_be_there(offset, space, plan, message):
    with pytest.raises(SimulationError, match=f"'memref.view': .*{message}"):
        placed(("a", offset, space), plan=plan)


def test_the_alignment_is_that_of_the_target():
    coarse = replace(SMALL, sram=replace(SMALL.sram, alignment=256))
    placed(("a", 64, p.SRAM))
    with pytest.raises(SimulationError, match="no multiple of its alignment, 256"):
        placed(("a", 64, p.SRAM), target=coarse)


def time_it(*lines: str) -> None:
    buffers = (p.alloc("a", "8x8"), p.alloc("b", "8x8"), p.alloc("t", "8x8", p.ACC))
    module = p.kernel({"x": "8x8", "y": "8x8"}, *buffers, *lines)
    (kernel,) = kernels(module.operation)
    simulate_kernel(module.operation, kernel, EDGE)


LOAD = (p.load("x", "a", "8x8", "l"), p.wait("l"))
STORE = (p.store("b", "y", "8x8", "s"), p.wait("s"))


@pytest.mark.parametrize(
    "lines, message",
    [
        ([p.negate("a", "b", "8x8")], "'npu.eltwise': reads sram buffer .* 256 bytes"),
        ([*STORE], "'npu.dma_start': reads sram buffer .* nothing has written 256 bytes"),
        ([p.drain("t", "b", "8x8")], "'npu.drain': reads acc buffer .* 256 bytes"),
        ([*LOAD, p.add("a", "b", "a", "8x8")], "'npu.eltwise': reads sram buffer %alloc_0"),
    ],
)
def test_bytes_that_nothing_has_written(lines, message):
    with pytest.raises(SimulationError, match=message):
        time_it(*lines)


def test_accumulating_reads_the_accumulators():
    lines = [
        p.alloc("l", "8x8"), p.alloc("r", "1x8x8"), p.alloc("o", "8x1x8", p.ACC),
        p.fill("l", "8x8", p.SRAM), p.fill("r", "1x8x8", p.SRAM),
    ]  # fmt: skip
    product = p.matmul("l", "r", "o", 8, 8, 1, 8)
    time_it(*lines, p.fill("o", "8x1x8"), product)
    with pytest.raises(SimulationError, match="'npu.matmul': reads acc buffer %alloc_4"):
        time_it(*lines, product)


def test_a_part_that_nothing_has_written():
    half = (
        f"%h = memref.subview %b[0, 0] [4, 8] [1, 1] : {p.memref('8x8', p.SRAM)} to "
        'memref<4x8xf32, strided<[8, 1]>, #npu.space<"sram">>',
        '"npu.fill"(%h) {value = 0.0 : f32} : '
        '(memref<4x8xf32, strided<[8, 1]>, #npu.space<"sram">>) -> ()',
    )
    with pytest.raises(SimulationError, match="nothing has written 128 bytes"):
        time_it(*half, *STORE)


def test_element_by_element_in_place():
    time_it(*LOAD, p.negate("a", "a", "8x8"))


def test_inputs_that_overlap_with_the_output():
    views = (("a", 0, p.SRAM), ("b", 64, p.SRAM))
    lines = [p.fill("a", "8x8", p.SRAM), p.negate("a", "b", "8x8")]
    with pytest.raises(
        SimulationError, match="'npu.eltwise': reads .* overlaps with .* its output"
    ):
        placed(*views, lines=lines)


BOX = "memref<4x8xf32, strided<[8, 1], offset: ?>>"


def half(name: str, first: int) -> str:
    """Four rows of %y; the verifier of moves does not see which."""
    return (
        f"%{name}_i = arith.constant {first} : index\n"
        f"%{name} = memref.subview %y[%{name}_i, 0] [4, 8] [1, 1] : {p.memref('8x8')} to {BOX}"
    )


def within_dram(first: int):
    return p.kernel(
        {"x": "8x8", "y": "8x8"},
        half("from", 0),
        half("to", first),
        '%t = "npu.dma_start"(%from, %to) {permutation = array<i64: 0, 1>} : '
        f"({BOX}, {BOX}) -> !npu.token",
        p.wait("t"),
    )


def test_moves_onto_themselves():
    def run(module):
        arrays = [np.ones((8, 8), np.float32) for _ in range(2)]
        run_function(module.operation, "kernel", arrays[:1], arrays[1:])

    def time(module):
        (kernel,) = kernels(module.operation)
        simulate_kernel(module.operation, kernel, EDGE)

    for execute in (run, time):
        execute(within_dram(4))
        with pytest.raises(SimulationError, match="'npu.dma_start': .* overlaps with dram buffer"):
            execute(within_dram(2))


@pytest.mark.parametrize("role", ["input", "parameter", "prepared"])
def test_arguments_that_are_only_read(role):
    def program(written: str):
        text = "\n".join([p.alloc("a", "8"), p.fill("a", "8", p.SRAM),
                          p.store("a", written, "8", "s"), p.wait("s")])  # fmt: skip
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(
                f'func.func @kernel(%x: {p.memref("8")} {{npu.role = "{role}"}}, '
                f'%y: {p.memref("8")} {{npu.role = "output"}}) attributes {{npu.kernel = "test"}} '
                f"{{\n{text}\nreturn\n}}"
            )
        (kernel,) = kernels(module.operation)
        simulate_kernel(module.operation, kernel, EDGE)

    program("y")
    with pytest.raises(SimulationError, match=f"writes dram buffer arg0 .* of role '{role}'"):
        program("x")


BARRIER = '"npu.barrier"() : () -> ()'


@pytest.mark.parametrize("functional", [True, False])
def test_moves_before_a_barrier_are_complete_after_it(functional):
    def execute(*lines: str) -> np.ndarray:
        buffers = (p.alloc("a", "8x8"), p.alloc("b", "8x8"))
        module = p.kernel({"x": "8x8", "y": "8x8"}, *buffers, *lines)
        result = np.empty((8, 8), np.float32)
        if functional:
            run_function(module.operation, "kernel", [np.ones((8, 8), np.float32)], [result])
        else:
            (kernel,) = kernels(module.operation)
            simulate_kernel(module.operation, kernel, EDGE)
        return result

    load, negate = p.load("x", "a", "8x8", "l"), p.negate("a", "b", "8x8")
    result = execute(load, BARRIER, negate, *STORE, p.wait("l"))
    assert not functional or (result == -1).all()
    with pytest.raises(SimulationError, match="never waited for"):
        execute(load, BARRIER, negate, *STORE)
    with pytest.raises(SimulationError, match="race"):
        execute(BARRIER, load, negate, *STORE, p.wait("l"))
