"""conv2d and matmul on vectors: exact on small integers, on every vector unit."""

import numpy as np
import pytest
from jit import AVX2, AVX512, SSE, Function, memref_type, segments
from npu_text import bias_relu_drain, compute, copy_drain, fill, function, identity_map, window
from reference import conv2d, integers, out_extent, relu

UNITS = pytest.mark.parametrize("unit", [AVX512, AVX2, SSE], ids=["avx512", "avx2", "sse"])
RNG = np.random.default_rng(7)
# (n, h, w, c), (ko, r, s, ki), strides, dilations
CASES = [
    ((1, 5, 5, 3), (1, 3, 3, 1), (1, 1), (1, 1)),
    ((1, 9, 17, 4), (2, 3, 3, 2), (1, 1), (1, 1)),
    ((2, 6, 7, 5), (1, 1, 1, 3), (1, 1), (1, 1)),
    ((1, 12, 11, 1), (3, 5, 3, 5), (2, 1), (1, 1)),
    ((1, 10, 33, 8), (2, 3, 3, 8), (1, 1), (1, 1)),
    ((1, 13, 13, 6), (1, 3, 3, 12), (2, 2), (1, 1)),
    ((1, 11, 18, 16), (4, 3, 3, 16), (1, 1), (1, 1)),
    ((1, 9, 9, 7), (3, 3, 2, 24), (1, 2), (2, 1)),
    ((2, 9, 16, 3), (2, 2, 3, 32), (1, 1), (3, 2)),
    ((1, 14, 14, 10), (5, 1, 1, 16), (1, 1), (1, 1)),
    ((1, 15, 15, 9), (2, 1, 1, 16), (2, 2), (1, 1)),
    ((1, 1, 80, 1), (2, 1, 33, 16), (1, 4), (1, 1)),
    ((1, 7, 7, 3), (9, 7, 7, 13), (1, 1), (1, 1)),
    ((3, 3, 3, 2), (2, 3, 3, 40), (1, 1), (1, 1)),
]


def geometry(image, kernel, strides, dilations):
    n, h, w, c = image
    ko, r, s, ki = kernel
    out = (
        n,
        out_extent(h, r, strides[0], dilations[0]),
        out_extent(w, s, strides[1], dilations[1]),
    )
    return {"x": image, "w": (ko, r, s, c, ki), "b": (ko, ki), "o": (*out, ko, ki)}


def random_case(rng):
    ki = int(rng.choice([1, 2, 3, 5, 8, 12, 16, 24, 32]))
    strides, dilations = (tuple(int(v) for v in rng.integers(1, 4, 2)) for _ in range(2))
    ko, r, s, c, oh, ow = (int(rng.integers(1, top)) for top in (4, 5, 5, 20, 7, 20))
    h, w = (
        (o - 1) * st + (k - 1) * d + 1 for o, k, st, d in zip((oh, ow), (r, s), strides, dilations)
    )
    return (int(rng.integers(1, 3)), h, w, c), (ko, r, s, ki), strides, dilations


def compiled_conv(case, unit, *, fused=True, unused=0):
    """The function, and the shapes of its arguments."""
    image, _, strides, dilations = case
    shapes = geometry(*case)
    if unused:
        shapes["x"] = (image[0], image[1] + unused, image[2] + unused, image[3])
    out, acc = shapes["o"], memref_type(shapes["o"], "acc")
    operands = {"x": shapes["x"], "w": shapes["w"]}
    conv = compute("conv2d", window(strides, dilations), operands, out)
    # A second conv2d on the same accumulator keeps the first from being fused with the drain.
    body = [fill("acc", acc), conv, *([] if fused else [conv]), bias_relu_drain(out, 2)]
    return Function(function(shapes, out, *body), unit), shapes


def run_conv(case, unit, *, fused=True, unused=0):
    image, _, strides, dilations = case
    compiled, shapes = compiled_conv(case, unit, fused=fused, unused=unused)
    out = shapes["o"]
    x, w, b = (integers(RNG, shapes[k]) for k in "xwb")
    o, memory = np.full(out, np.nan, np.float32), np.full(out, np.nan, np.float32)
    compiled(x, w, b, o, memory)
    exact = conv2d(x[:, : image[1], : image[2]], w, strides, dilations) * (1 if fused else 2)
    np.testing.assert_array_equal(o, relu(exact + b))
    return memory


@UNITS
@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, c[0] + c[1])))
def test_fused_conv2d_leaves_the_accumulator_memory_alone(case, unit):
    assert np.isnan(run_conv(case, unit)).all()


@pytest.mark.parametrize("seed", range(12))
def test_random_conv2d(seed):
    rng = np.random.default_rng(seed)
    run_conv(random_case(rng), [AVX512, AVX2, SSE][seed % 3], fused=bool(seed % 2))


@pytest.mark.parametrize(
    "unit, channels, twice", [(AVX512, 24, True), (AVX512, 32, False), (AVX2, 12, False)]
)
def test_a_narrower_vector_loads_its_scalars_itself(unit, channels, twice):
    """Through an address that is hidden: loads of one address would become one."""
    case = ((1, 14, 14, 10), (1, 1, 1, channels), (1, 1), (1, 1))
    compiled, _ = compiled_conv(case, unit)
    assert ("llvm.inline_asm" in compiled.vector_text) == twice
    run_conv(case, unit)


@UNITS
@pytest.mark.parametrize("case", CASES[5:8], ids=lambda c: "x".join(map(str, c[0] + c[1])))
def test_unfused_conv2d_accumulates_in_memory(case, unit):
    assert not np.isnan(run_conv(case, unit, fused=False)).any()


def test_input_tiles_may_carry_unused_rows_and_columns():
    run_conv(CASES[6], AVX512, unused=1)


@UNITS
@pytest.mark.parametrize(
    ("m", "no", "c", "ni"), [(1, 5, 9, 16), (13, 3, 7, 8), (49, 2, 33, 16), (4, 7, 1, 3)]
)
def test_matmul(m, no, c, ni, unit):
    shapes = {"x": (m, c), "w": (no, c, ni), "b": (no, ni), "o": (m, no, ni)}
    product = compute("matmul", "", {"x": shapes["x"], "w": shapes["w"]}, shapes["o"])
    start = fill("acc", memref_type(shapes["o"], "acc"))
    text = function(shapes, shapes["o"], start, product, bias_relu_drain(shapes["o"], 2))
    compiled = Function(text, unit)
    x, w, b = (integers(RNG, shapes[k]) for k in "xwb")
    o, memory = np.full(shapes["o"], np.nan, np.float32), np.full(shapes["o"], np.nan, np.float32)
    compiled(x, w, b, o, memory)
    np.testing.assert_array_equal(o, relu(np.einsum("mc,oci->moi", x, w) + b))
    assert np.isnan(memory).all()


def test_reduction_tiled_by_a_loop_outside():
    """Channels in slices of four: filled before the loop, drained after it."""
    image, sliced, whole = (1, 6, 9, 12), (1, 6, 9, 4), (2, 3, 3, 12, 8)
    shapes = {"x": image, "w": whole, "b": (2, 8), "o": (1, 4, 7, 2, 8)}
    strided = 'strided<[648, 108, 12, 1], offset: ?>, #npu.space<"sram">>'
    packed = 'strided<[864, 288, 96, 8, 1], offset: ?>, #npu.space<"sram">>'
    acc = memref_type(shapes["o"], "acc")
    loop = f"""
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  scf.for %i = %c0 to %c12 step %c4 {{
    %xs = memref.subview %x_t[0, 0, 0, %i] [1, 6, 9, 4] [1, 1, 1, 1]
      : {memref_type(image, "sram")} to memref<1x6x9x4xf32, {strided}
    %ws = memref.subview %w_t[0, 0, 0, %i, 0] [2, 3, 3, 4, 8] [1, 1, 1, 1, 1]
      : {memref_type(whole, "sram")} to memref<2x3x3x4x8xf32, {packed}
    "npu.conv2d"(%xs, %ws, %acc) {{{window((1, 1), (1, 1))}}}
      : (memref<1x6x9x4xf32, {strided}, memref<2x3x3x4x8xf32, {packed}, {acc}) -> ()
  }}"""
    text = function(shapes, shapes["o"], fill("acc", acc), loop, bias_relu_drain(shapes["o"], 2))
    assert sliced[3] == 4
    compiled = Function(text)
    x, w, b = (integers(RNG, shapes[k]) for k in "xwb")
    o, memory = np.full(shapes["o"], np.nan, np.float32), np.full(shapes["o"], np.nan, np.float32)
    compiled(x, w, b, o, memory)
    np.testing.assert_array_equal(o, relu(conv2d(x, w, (1, 1), (1, 1)) + b))


def test_a_drain_into_the_memory_of_the_input_is_not_fused():
    """In place: writing outputs while later pixels still read inputs would be wrong."""
    shapes = {"x": (5, 16), "w": (1, 16, 16), "o": (5, 1, 16)}
    out = memref_type(shapes["o"], "sram")
    alias = f"""%o_t = memref.expand_shape %x_t [[0], [1, 2]] output_shape [5, 1, 16]
      : {memref_type(shapes["x"], "sram")} into {out}"""
    operands = {"x": shapes["x"], "w": shapes["w"]}
    start = fill("acc", memref_type(shapes["o"], "acc"))
    product = compute("matmul", "", operands, shapes["o"])
    text = function(operands, shapes["o"], alias, start, product, copy_drain(shapes["o"]))
    compiled = Function(text)
    x, w = integers(RNG, shapes["x"]), integers(RNG, shapes["w"])
    memory, want = np.zeros(shapes["o"], np.float32), np.einsum("mc,ci->mi", x, w[0])
    compiled(x, w, memory)
    np.testing.assert_array_equal(x, want)


def test_output_with_channels_before_pixels():
    """A drain may transpose on its way out: lanes land far apart."""
    shapes = {"x": (1, 6, 8, 5), "w": (2, 3, 3, 5, 8), "o": (1, 2, 8, 4, 6)}
    acc = (1, 4, 6, 2, 8)
    drain = f"""
  "npu.drain"(%acc, %o_t) ({{
  ^bb0(%a: f32, %old: f32):
    %sum = arith.negf %a : f32
    "npu.yield"(%sum) : (f32) -> ()
  }}) {{indexing_maps = [affine_map<(n, k, i, y, x) -> (n, y, x, k, i)>, {identity_map(5)}],
       {segments(0, accumulator=True)}}}
    : ({memref_type(acc, "acc")}, {memref_type(shapes["o"], "sram")}) -> ()"""
    operands = {"x": shapes["x"], "w": shapes["w"]}
    start = fill("acc", memref_type(acc, "acc"))
    conv = compute("conv2d", window((1, 1), (1, 1)), operands, acc)
    compiled = Function(function(shapes, acc, start, conv, drain))
    x, w = integers(RNG, shapes["x"]), integers(RNG, shapes["w"])
    o, memory = np.full(shapes["o"], np.nan, np.float32), np.full(acc, np.nan, np.float32)
    compiled(x, w, o, memory)
    want = -conv2d(x, w, (1, 1), (1, 1))
    np.testing.assert_array_equal(o, want.transpose(0, 3, 4, 1, 2))
    assert np.isnan(memory).all()
