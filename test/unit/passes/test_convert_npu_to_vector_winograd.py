"""The ops of Winograd convolutions on vectors, against numpy, on every vector unit.

The entries of the transforms of images and of products are multiples of small powers of 2, so that
on small integers each op is exact. Transformed weights are exact for windows of 2 only.
"""

import numpy as np
import pytest
from jit import AVX2, AVX512, SSE, Function, memref_type, on_chip, signature
from npu_text import bias_relu_drain, compute, copy_drain, fill, function
from reference import conv2d, integers, relu

from mlir_npu.passes.analysis.winograd import algorithm

UNITS = pytest.mark.parametrize("unit", [AVX512, AVX2, SSE], ids=["avx512", "avx2", "sse"])
OUTPUTS = pytest.mark.parametrize("outputs", [2, 4])
RNG = np.random.default_rng(5)


def matrix(rows):
    return np.array([[float(entry) for entry in row] for row in rows])


def input_transform(x, m):
    """The windows of an NHWC image in the domain of products."""
    b, (_, height, width, channels) = matrix(algorithm(m).input), x.shape
    rows, columns = (range(0, extent - 2, m) for extent in (height, width))
    windows = [[x[:, y : y + m + 2, z : z + m + 2] for z in columns] for y in rows]
    taken = np.array(windows, np.float64)
    return np.einsum("ai,bj,yxnijc->abnyxc", b, b, taken).reshape((m + 2) ** 2, -1, channels)


def output_transform(products, shape, m):
    a, (n, rows, _, columns, _, blocks, block) = matrix(algorithm(m).output), shape
    windows = products.reshape(m + 2, m + 2, n, rows, columns, blocks, block).astype(np.float64)
    return np.einsum("ua,vb,abnyxki->nyuxvki", a, a, windows)


def filter_transform(w, m):
    """ko r s c ki to the operand of the products."""
    g = matrix(algorithm(m).filter)
    spread = np.einsum("ar,bs,krsci->abkci", g, g, w)
    return np.ascontiguousarray(spread.reshape(-1, *spread.shape[2:]), np.float32)


@UNITS
@OUTPUTS
@pytest.mark.parametrize("n, rows, columns, channels", [(1, 1, 1, 1), (2, 3, 2, 37), (3, 1, 4, 64)])
def test_winograd_input(n, rows, columns, channels, outputs, unit):
    points, windows = (outputs + 2) ** 2, n * rows * columns
    shapes = {
        "x": (n, rows * outputs + 2, columns * outputs + 2, channels),
        "t": (points, windows, channels),
    }
    types = ", ".join(memref_type(shape, "sram") for shape in shapes.values())
    op = f'"npu.winograd_input"(%x_t, %t_t) {{outputs = {outputs} : i64}} : ({types}) -> ()'
    x, t = integers(RNG, shapes["x"]), np.full(shapes["t"], np.nan, np.float32)
    Function(function(shapes, None, op), unit)(x, t)
    np.testing.assert_array_equal(t, input_transform(x, outputs))


def output_op(products, total, outputs):
    types = f"{memref_type(products, 'acc')}, {memref_type(total, 'acc')}"
    return f'"npu.winograd_output"(%p_t, %acc) {{outputs = {outputs} : i64}} : ({types}) -> ()'


def run_output(total, outputs, unit, body, *arrays):
    """`body` between %p_t, products in acc, and %o_t; returns products, result and memory."""
    n, rows, _, columns, _, blocks, block = total
    products = ((outputs + 2) ** 2, n * rows * columns, blocks, block)
    shapes = {"b": (blocks, block), "o": total}
    cast = f"""%p_t = memref.memory_space_cast %p
      : {memref_type(products)} to {memref_type(products, "acc")}
  %acc = memref.memory_space_cast %memory : {memref_type(total)} to {memref_type(total, "acc")}"""
    text = f"""func.func @main({signature(p=products, **shapes, memory=total)}) {{
  {on_chip(**shapes)}
  {cast}
  {body(products)}
  return
}}"""
    p, b = integers(RNG, products), integers(RNG, shapes["b"])
    o, memory = np.full(total, np.nan, np.float32), np.full(total, 3, np.float32)
    Function(text, unit)(p, b, o, memory)
    return output_transform(p, total, outputs), b, o, memory


SIZES = pytest.mark.parametrize(
    "n, rows, columns, blocks, block", [(1, 1, 1, 1, 1), (2, 3, 2, 2, 16), (1, 2, 5, 3, 13)]
)


@UNITS
@OUTPUTS
@SIZES
@pytest.mark.parametrize("start", ["0.0", "2.0"])
def test_fused_winograd_output(n, rows, columns, blocks, block, start, outputs, unit):
    total = (n, rows, outputs, columns, outputs, blocks, block)

    def body(products):
        ops = [fill("acc", memref_type(total, "acc"), start), output_op(products, total, outputs)]
        return "\n  ".join([*ops, bias_relu_drain(total, 2)])

    images, b, o, memory = run_output(total, outputs, unit, body)
    np.testing.assert_array_equal(o, relu(images + float(start) + b))
    assert (memory == 3).all()


@OUTPUTS
@SIZES
def test_winograd_output_accumulates_in_memory(n, rows, columns, blocks, block, outputs):
    total = (n, rows, outputs, columns, outputs, blocks, block)
    images, _, o, memory = run_output(
        total, outputs, AVX2, lambda products: output_op(products, total, outputs)
    )
    np.testing.assert_array_equal(memory, images + 3)
    assert np.isnan(o).all()


@UNITS
@pytest.mark.parametrize(
    "p, m, no, c, ni", [(1, 5, 1, 9, 16), (16, 6, 2, 7, 8), (36, 3, 3, 5, 13), (4, 49, 1, 33, 24)]
)
def test_batch_matmul(p, m, no, c, ni, unit):
    shapes = {"x": (p, m, c), "w": (p, no, c, ni), "b": (no, ni), "o": (p, m, no, ni)}
    operands = {"x": shapes["x"], "w": shapes["w"]}
    product = compute("batch_matmul", "", operands, shapes["o"])
    start = fill("acc", memref_type(shapes["o"], "acc"))
    text = function(shapes, shapes["o"], start, product, bias_relu_drain(shapes["o"], 2))
    x, w, b = (integers(RNG, shapes[k]) for k in "xwb")
    o, memory = np.full(shapes["o"], np.nan, np.float32), np.full(shapes["o"], np.nan, np.float32)
    Function(text, unit)(x, w, b, o, memory)
    np.testing.assert_array_equal(o, relu(np.einsum("pmc,poci->pmoi", x, w) + b))
    assert np.isnan(memory).all()


def test_batch_matmul_adds_to_memory():
    shapes = {"x": (3, 5, 4), "w": (3, 2, 4, 8)}
    total = (3, 5, 2, 8)
    text = function(shapes, total, compute("batch_matmul", "", shapes, total))
    x, w, memory = integers(RNG, shapes["x"]), integers(RNG, shapes["w"]), integers(RNG, total)
    expected = memory + np.einsum("pmc,poci->pmoi", x, w)
    Function(text)(x, w, memory)
    np.testing.assert_array_equal(memory, expected)


@UNITS
@OUTPUTS
@pytest.mark.parametrize(
    "n, rows, columns, depth, blocks, block", [(1, 2, 3, 16, 2, 16), (3, 1, 2, 11, 3, 5)]
)
def test_the_three_ops_are_a_convolution(n, rows, columns, depth, blocks, block, outputs, unit):
    points, windows = (outputs + 2) ** 2, n * rows * columns
    shapes = {
        "x": (n, rows * outputs + 2, columns * outputs + 2, depth),
        "u": (points, blocks, depth, block),
        "t": (points, windows, depth),
        "o": (n, rows, outputs, columns, outputs, blocks, block),
    }
    products = (points, windows, blocks, block)
    sram = {name: memref_type(shape, "sram") for name, shape in shapes.items()}
    acc = memref_type(products, "acc")
    text = f"""func.func @main({signature(**shapes, p=products, memory=shapes["o"])}) {{
  {on_chip(**shapes)}
  %p_t = memref.memory_space_cast %p : {memref_type(products)} to {acc}
  %acc = memref.memory_space_cast %memory
    : {memref_type(shapes["o"])} to {memref_type(shapes["o"], "acc")}
  "npu.winograd_input"(%x_t, %t_t) {{outputs = {outputs} : i64}} : ({sram["x"]}, {sram["t"]}) -> ()
  {fill("p_t", acc)}
  "npu.batch_matmul"(%t_t, %u_t, %p_t) : ({sram["t"]}, {sram["u"]}, {acc}) -> ()
  {fill("acc", memref_type(shapes["o"], "acc"))}
  {output_op(products, shapes["o"], outputs)}
  {copy_drain(shapes["o"])}
  return
}}"""
    x, w = integers(RNG, shapes["x"]), integers(RNG, (blocks, 3, 3, depth, block))
    t, o, p, memory = (
        np.full(shape, np.nan, np.float32)
        for shape in (shapes["t"], shapes["o"], products, shapes["o"])
    )
    Function(text, unit)(x, filter_transform(w, outputs), t, o, p, memory)
    expected = conv2d(x, w, (1, 1), (1, 1))
    result = o.reshape(expected.shape)
    if outputs == 2:
        np.testing.assert_array_equal(result, expected)
    else:
        np.testing.assert_allclose(result, expected, atol=1e-3)
