"""Results of programs in every element type, and of programs that were broken on purpose."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
from test_compiled import KERNELS, parsed

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.simulator.errors import SimulationError
from mlir_npu.simulator.functional import run_function
from mlir_npu.simulator.staging import stage_module

TYPES = {"i8": (np.int8, np.int32), "f16": (np.float16, np.float32), "f32": (np.float32,) * 2}
WIDE = {"i8": "i32", "f16": "f32", "f32": "f32"}
ZERO = {"i8": "0 : i32", "f16": "0.0 : f32", "f32": "0.0 : f32"}


def product(element: str) -> ir.Module:
    """(8, 12) times (2, 12, 4) into the wider type, on one tile."""
    wide = WIDE[element]
    left, right, total = f"8x12x{element}", f"2x12x4x{element}", f"8x2x4x{wide}"
    moves = [
        f'%t{i} = "npu.dma_start"(%{a}, %{b}) {{permutation = array<i64: {order}>}} : '
        f"(memref<{shape}>, memref<{shape}, {p.SRAM}>) -> !npu.token"
        for i, (a, b, order, shape) in enumerate(
            [("x", "l", "0, 1", left), ("w", "r", "0, 1, 2", right)]
        )
    ]
    text = f"""
func.func @kernel(%x: memref<{left}>, %w: memref<{right}>, %y: memref<{total}>)
    attributes {{npu.kernel = "matmul"}} {{
  %l = memref.alloc() : memref<{left}, {p.SRAM}>
  %r = memref.alloc() : memref<{right}, {p.SRAM}>
  %acc = memref.alloc() : memref<{total}, {p.ACC}>
  %o = memref.alloc() : memref<{total}, {p.SRAM}>
  "npu.fill"(%acc) {{value = {ZERO[element]}}} : (memref<{total}, {p.ACC}>) -> ()
  {moves[0]}
  {moves[1]}
  {p.wait("t0", "t1")}
  "npu.matmul"(%l, %r, %acc)
    : (memref<{left}, {p.SRAM}>, memref<{right}, {p.SRAM}>, memref<{total}, {p.ACC}>) -> ()
  "npu.drain"(%acc, %o) ({{
  ^bb0(%v: {wide}, %old: {wide}):
    "npu.yield"(%v) : ({wide}) -> ()
  }}) {{indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
    operandSegmentSizes = array<i32: 1, {"0, " * 16}1>}}
    : (memref<{total}, {p.ACC}>, memref<{total}, {p.SRAM}>) -> ()
  %s = "npu.dma_start"(%o, %y) {{permutation = array<i64: 0, 1, 2>}}
    : (memref<{total}, {p.SRAM}>, memref<{total}>) -> !npu.token
  {p.wait("s")}
  return
}}"""
    with make_context(), ir.Location.unknown():
        return ir.Module.parse(text)


@pytest.mark.parametrize("element", TYPES)
def test_products_of_narrow_types_add_up_in_the_wider_one(element):
    narrow, wide = TYPES[element]
    rng = np.random.default_rng(0)
    x, w = rng.integers(-100, 101, (8, 12)), rng.integers(-100, 101, (2, 12, 4))
    result = np.empty((8, 2, 4), wide)
    run_function(
        product(element).operation, "kernel", [x.astype(narrow), w.astype(narrow)], [result]
    )
    np.testing.assert_array_equal(result, np.einsum("mc,kci->mki", x, w))


def staged_text(name: str) -> str:
    module = parsed(KERNELS[name])
    stage_module(module)
    return str(module)


def run_text(text: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    kernel = KERNELS[name]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
    arrays, result = kernel.arrays(0), np.empty(kernel.output, np.float32)
    run_function(module.operation, "main", arrays, [result])
    return result, kernel.reference(*arrays)


def swapped(line: str) -> str:
    """arith.select with its buffers the other way round."""
    head, _, rest = line.partition("arith.select ")
    operands, _, type_ = rest.partition(" : ")
    condition, one, other = operands.split(", ")
    return f"{head}arith.select {condition}, {other}, {one} : {type_}"


def test_a_load_into_the_wrong_one_of_two_buffers_is_found():
    """The buffer to compute on and the one to load into are chosen by a pair of selects."""
    name = "conv 3x3"
    lines = staged_text(name).splitlines()
    choices = [i for i, line in enumerate(lines) if "arith.select" in line and "npu.space" in line]
    paired = [
        i for i in choices if any(swapped(lines[i]).split("=")[1] in lines[j] for j in choices)
    ]
    assert len(paired) >= 4
    for i in paired:
        with pytest.raises(SimulationError, match="race"):
            run_text("\n".join([*lines[:i], swapped(lines[i]), *lines[i + 1 :]]), name)


def test_every_wait_in_a_loop_matters():
    name = "conv 3x3"
    lines = staged_text(name).splitlines()
    # behind a loop the tokens of loads are those of no move
    waits = [i for i, line in enumerate(lines) if '"npu.dma_wait"(%arg' in line]
    assert len(waits) >= 4
    for i in waits:
        with pytest.raises(SimulationError, match="race|never waited"):
            run_text("\n".join([*lines[:i], *lines[i + 1 :]]), name)


def test_the_program_itself_is_right():
    result, expected = run_text(staged_text("conv 3x3"), "conv 3x3")
    np.testing.assert_array_equal(result, expected)
