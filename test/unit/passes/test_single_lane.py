"""A lane that is left alone is summed along the reduction: exact on small integers."""

import numpy as np
import pytest
from jit import AVX2, AVX512, Function, memref_type
from npu_text import bias_relu_drain, compute, fill, function
from reference import integers, relu

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.single_lane import has_single_lane

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("unit", [AVX512, AVX2], ids=["avx512", "avx2"])
@pytest.mark.parametrize(
    ("rows", "blocks", "steps", "lanes"),
    [
        (5, 1, 32, 17),
        (1, 1, 16, 49),
        (23, 1, 64, 49),
        (8, 1, 48, 113),
        (3, 1, 40, 33),
        (9, 2, 32, 17),
        (9, 5, 16, 33),
    ],
)
def test_products(rows, blocks, steps, lanes, unit):
    out = (rows, blocks, lanes)
    shapes = {"x": (rows, steps), "w": (blocks, steps, lanes), "b": (blocks, lanes), "o": out}
    product = compute("matmul", "", {"x": shapes["x"], "w": shapes["w"]}, out)
    body = [fill("acc", memref_type(out, "acc")), product, bias_relu_drain(out, 2)]
    compiled = Function(function(shapes, out, *body), unit)
    x, w, b = (integers(RNG, shapes[k]) for k in "xwb")
    o, memory = np.full(out, np.nan, np.float32), np.full(out, np.nan, np.float32)
    compiled(x, w, b, o, memory)
    np.testing.assert_array_equal(o, relu(np.einsum("mc,ncl->mnl", x, w) + b))


def test_where_vectors_of_the_reduction_can_be_read():
    with make_context(), ir.Location.unknown():
        operands = tuple(Operand(None, 0, (), ir.F32Type.get()) for _ in range(2))
        lanes, steps = Dim(49, (0, 1)), [Dim(32, (1, 49))]
        assert has_single_lane(operands, lanes, steps, 16)
        assert not has_single_lane(operands, Dim(50, (0, 1)), steps, 16)  # two lanes are left
        assert not has_single_lane(operands, Dim(9, (0, 1)), steps, 16)  # no vector is full
        assert not has_single_lane(operands, lanes, [Dim(32, (2, 49))], 16)
        assert not has_single_lane(operands, lanes, [Dim(40, (1, 49))], 16)
        assert not has_single_lane(operands, lanes, [Dim(3, (99, 1)), *steps], 16)
