"""The ops of Winograd convolutions on the simulated machine: results, and cycles by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import programs as p
import pytest
from test_cycles import EDGE, timed

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.winograd import algorithm
from mlir_npu.passes.kernels.walk import nested
from mlir_npu.simulator.compute import compute_function
from mlir_npu.simulator.costs import compute_cost
from mlir_npu.simulator.functional import run_function

sys.path.append(str(Path(__file__).parents[1] / "passes"))
from reference import conv2d, integers  # noqa: E402

N, ROWS, COLUMNS, DEPTH, BLOCKS, BLOCK = 2, 2, 3, 5, 2, 4
OUTPUTS = pytest.mark.parametrize("outputs", [2, 4])


def text(*shape: int) -> str:
    return "x".join(map(str, shape))


def shapes(m: int) -> dict[str, str]:
    points, windows = (m + 2) ** 2, N * ROWS * COLUMNS
    return {
        "image": text(N, m * ROWS + 2, m * COLUMNS + 2, DEPTH),
        "weights": text(points, BLOCKS, DEPTH, BLOCK),
        "transformed": text(points, windows, DEPTH),
        "products": text(points, windows, BLOCKS, BLOCK),
        "sums": text(N, ROWS, m, COLUMNS, m, BLOCKS, BLOCK),
    }


def three_ops(m: int) -> list[str]:
    s = shapes(m)
    image, weights, transformed = (
        p.memref(s[name], p.SRAM) for name in ("image", "weights", "transformed")
    )
    products, sums = (p.memref(s[name], p.ACC) for name in ("products", "sums"))
    return [
        f'"npu.winograd_input"(%image, %transformed) {{outputs = {m} : i64}} '
        f": ({image}, {transformed}) -> ()",
        p.fill("products", s["products"]),
        '"npu.batch_matmul"(%transformed, %weights, %products) '
        f": ({transformed}, {weights}, {products}) -> ()",
        p.fill("sums", s["sums"]),
        f'"npu.winograd_output"(%products, %sums) {{outputs = {m} : i64}} '
        f": ({products}, {sums}) -> ()",
    ]


def program(m: int) -> ir.Module:
    s = shapes(m)
    return p.kernel(
        {"x": s["image"], "w": s["weights"], "y": s["sums"]},
        *(p.alloc(name, s[name]) for name in ("image", "weights", "transformed")),
        *(p.alloc(name, s[name], p.ACC) for name in ("products", "sums")),
        p.alloc("out", s["sums"]),
        p.load("x", "image", s["image"], "t"),
        p.load("w", "weights", s["weights"], "u"),
        p.wait("t", "u"),
        *three_ops(m),
        p.drain("sums", "out", s["sums"]),
        p.store("out", "y", s["sums"], "s"),
        p.wait("s"),
    )


def op_of(module: ir.Module, name: str) -> ir.Operation:
    (found,) = nested(module.operation, f"npu.{name}")
    return found


@OUTPUTS
def test_the_program_computes_the_convolution(outputs):
    rng, g = np.random.default_rng(0), algorithm(outputs).filter
    g = np.array([[float(entry) for entry in row] for row in g])
    x = integers(rng, [int(e) for e in shapes(outputs)["image"].split("x")])
    w = integers(rng, (BLOCKS, 3, 3, DEPTH, BLOCK))
    u = np.einsum("ar,bs,krsci->abkci", g, g, w).reshape(-1, BLOCKS, DEPTH, BLOCK)
    y = np.empty((N, ROWS, outputs, COLUMNS, outputs, BLOCKS, BLOCK), np.float32)
    run_function(program(outputs).operation, "kernel", [x, u.astype(np.float32)], [y])
    expected = -conv2d(x, w, (1, 1), (1, 1))  # the drain negates
    if outputs == 2:  # exact on integers
        np.testing.assert_array_equal(y.reshape(expected.shape), expected)
    else:
        np.testing.assert_allclose(y.reshape(expected.shape), expected, atol=1e-3)


def test_a_batch_of_products_adds_up_in_the_accumulators():
    rng = np.random.default_rng(1)
    left, right = integers(rng, (16, 12, DEPTH)), integers(rng, (16, BLOCKS, DEPTH, BLOCK))
    total = integers(rng, (16, 12, BLOCKS, BLOCK))
    expected = total + np.einsum("pmc,pkci->pmki", left, right)
    compute_function(op_of(program(2), "batch_matmul"))([left, right, total])
    np.testing.assert_array_equal(total, expected)


def test_cycles_of_each_op():
    module = program(2)
    cost = {
        name: compute_cost(op_of(module, name), EDGE)
        for name in ("winograd_input", "batch_matmul", "winograd_output")
    }
    # 12 windows * 5 channels / 64 lanes = 1; 2 entries in each of 4 rows, 4 columns and 4 rows
    assert (cost["winograd_input"].unit, cost["winograd_input"].cycles) == ("vector", 8 * 8)
    # 16 products of 12 rows * ceil(5 / 16) * ceil(8 / 16) + 32
    assert (cost["batch_matmul"].unit, cost["batch_matmul"].cycles) == ("matrix", 16 * 44)
    assert cost["batch_matmul"].macs == 16 * 12 * DEPTH * BLOCKS * BLOCK
    # 12 * 8 / 64 = 2 (rounded up); 3 entries in each of 2 rows, 4 columns and 2 rows
    assert (cost["winograd_output"].unit, cost["winograd_output"].cycles) == ("vector", 2 * 36)


def test_cycles_of_the_program():
    # image: 2 * 6 * 8 * 5 * 4 = 1920 bytes, 100 + 60; weights: 16 * 40 * 4 = 2560 bytes, 100 + 80
    # on one channel they arrive at 340; input to 404; products, cleared before, to 1108
    # fill of the sums, behind the products on the matrix unit: 384 / 256 = 2, to 1110
    # output to 1182; drain: 384 / 64 = 6, to 1188; store: 1536 bytes, 100 + 48, to 1336
    run = timed(program(2))
    assert run.cycles == 1336
    # fill of the products: 1536 / 256 = 6
    assert run.busy["matrix"] == 6 + 16 * 44 + 2
    assert run.busy["vector"] == 64 + 72 + 6
    assert "3x3" in run.shape and f"{DEPTH} deep" in run.tile
