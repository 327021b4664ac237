"""What the check of staged programs finds: they must not depend on when moves deliver."""

from __future__ import annotations

import programs as p
import pytest

from mlir_npu.simulator.delivery import DeliveryCheck, check_delivery
from mlir_npu.simulator.errors import SimulationError

LOAD, STORE = p.load("x", "a", "8x8", "t"), p.store("b", "y", "8x8", "s")
NEGATE = p.negate("a", "b", "8x8")


def check(*lines: str) -> DeliveryCheck:
    buffers = (p.alloc("a", "8x8"), p.alloc("b", "8x8"))
    (found,) = check_delivery(p.kernel({"x": "8x8", "y": "8x8"}, *buffers, *lines))
    return found


def test_a_right_program():
    found = check(LOAD, p.wait("t"), NEGATE, STORE, p.wait("s"))
    assert found == DeliveryCheck("kernel", 64, 0, 0, 0)
    assert found.right


def test_a_program_with_two_buffers():
    tiles = p.double_buffered(4, "8x8", p.negate("cur", "o", "8x8"))
    (found,) = check_delivery(p.kernel({"x": "4x8x8", "y": "4x8x8"}, tiles))
    assert found == DeliveryCheck("kernel", 256, 0, 0, 0)


def test_memory_that_nothing_has_written():
    found = check(NEGATE, STORE, p.wait("s"))
    assert found == DeliveryCheck("kernel", 64, 0, 64, 64)
    assert not found.right


def test_a_race():
    with pytest.raises(SimulationError, match="race"):
        check(LOAD, NEGATE, p.wait("t"), STORE, p.wait("s"))


def test_a_part_that_no_move_writes():
    sram, dram = 'strided<[8, 1]>, #npu.space<"sram">', "strided<[8, 1]>"
    half = [
        f"%{to} = memref.subview %{of}[0, 0] [4, 8] [1, 1] : {type_} to memref<4x8xf32, {layout}>"
        for to, of, type_, layout in (
            ("from", "b", p.memref("8x8", p.SRAM), sram),
            ("to", "y", p.memref("8x8"), dram),
        )
    ]
    store = (
        '%s = "npu.dma_start"(%from, %to) {permutation = array<i64: 0, 1>} : '
        f"(memref<4x8xf32, {sram}>, memref<4x8xf32, {dram}>) -> !npu.token"
    )
    found = check(LOAD, p.wait("t"), NEGATE, *half, store, p.wait("s"))
    assert found == DeliveryCheck("kernel", 64, 32, 0, 0)
    assert "32 are never written" in str(found)


def test_an_output_that_is_read_first():
    load = p.load("y", "a", "8x8", "t")
    assert check(load, p.wait("t"), NEGATE, STORE, p.wait("s")).undefined == 64


def test_a_kernel_without_results():
    found = check(LOAD, p.wait("t"), NEGATE)
    assert not found.right
    assert str(found) == "writes none of its arguments"


def test_not_a_number_by_arithmetic_is_no_fault():
    root = NEGATE.replace("arith.negf", "math.sqrt")
    assert check(LOAD, p.wait("t"), root, STORE, p.wait("s")).right
