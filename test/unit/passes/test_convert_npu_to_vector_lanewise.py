"""Depthwise convolution, pooling, reductions and elementwise ops on vectors, against numpy."""

import numpy as np
import pytest
from jit import AVX2, AVX512, SSE, Function, memref_type, segments
from npu_text import (
    bias_relu_drain,
    channel_map,
    compute,
    copy_drain,
    eltwise,
    fill,
    function,
    identity_map,
    window,
)
from reference import depthwise_conv2d, integers, out_extent, pool2d, relu

UNITS = pytest.mark.parametrize("unit", [AVX512, AVX2, SSE], ids=["avx512", "avx2", "sse"])
RNG = np.random.default_rng(11)
LOWEST = "0xFF800000"
# (n, h, w, c), window, strides, dilations
WINDOWS = [
    ((1, 6, 7, 1), (3, 3), (1, 1), (1, 1)),
    ((1, 9, 20, 16), (3, 3), (1, 1), (1, 1)),
    ((2, 11, 11, 37), (3, 3), (2, 2), (1, 1)),
    ((1, 9, 9, 100), (5, 5), (1, 1), (1, 1)),
    ((1, 12, 9, 8), (2, 3), (1, 2), (3, 2)),
    ((1, 7, 7, 24), (7, 7), (1, 1), (1, 1)),
    ((1, 1, 70, 3), (1, 31), (1, 2), (1, 1)),
    ((1, 20, 20, 5), (13, 13), (3, 3), (1, 1)),
]
CASES = pytest.mark.parametrize("case", WINDOWS, ids=lambda c: "x".join(map(str, c[0] + c[1])))


def output_of(image, taps, strides, dilations):
    extents = [out_extent(*a) for a in zip(image[1:3], taps, strides, dilations)]
    return (image[0], *extents, image[3])


@UNITS
@CASES
@pytest.mark.parametrize("fused", [True, False], ids=["fused", "memory"])
def test_depthwise_conv2d(case, unit, fused):
    image, taps, strides, dilations = case
    out = output_of(*case)
    shapes = {"x": image, "w": (*taps, image[3]), "b": image[3:], "o": out}
    conv = compute(
        "depthwise_conv2d", window(strides, dilations), {"x": image, "w": shapes["w"]}, out
    )
    start = fill("acc", memref_type(out, "acc"))
    body = [start, conv, *([] if fused else [conv]), bias_relu_drain(out, 1)]
    x, w, b = (integers(RNG, shapes[k]) for k in "xwb")
    o, memory = np.full(out, np.nan, np.float32), np.full(out, np.nan, np.float32)
    Function(function(shapes, out, *body), unit)(x, w, b, o, memory)
    want = depthwise_conv2d(x, w, strides, dilations) * (1 if fused else 2)
    np.testing.assert_array_equal(o, relu(want + b))
    assert np.isnan(memory).all() == fused


@UNITS
@CASES
@pytest.mark.parametrize(("kind", "initial"), [("max", LOWEST), ("sum", "0.0")])
def test_pool2d(case, unit, kind, initial):
    image, taps, strides, dilations = case
    out = output_of(*case)
    attributes = (
        f'kind = "{kind}", window = array<i64: {taps[0]}, {taps[1]}>, {window(strides, dilations)}'
    )
    body = [
        fill("acc", memref_type(out, "acc"), initial),
        compute("pool2d", attributes, {"x": image}, out),
        copy_drain(out),
    ]
    x = integers(RNG, image)
    o, memory = np.full(out, np.nan, np.float32), np.full(out, np.nan, np.float32)
    Function(function({"x": image, "o": out}, out, *body), unit)(x, o, memory)
    np.testing.assert_array_equal(o, pool2d(x, kind, taps, strides, dilations))
    assert np.isnan(memory).all()


def test_max_pool_keeps_nan_and_infinities():
    image, out = (1, 4, 4, 19), (1, 2, 2, 19)
    attributes = f'kind = "max", window = array<i64: 2, 2>, {window((2, 2), (1, 1))}'
    body = [
        fill("acc", memref_type(out, "acc"), LOWEST),
        compute("pool2d", attributes, {"x": image}, out),
        copy_drain(out),
    ]
    x = RNG.standard_normal(image).astype(np.float32)
    x[0, 0, 1, ::3], x[0, 3, 3, ::2], x[0, :2, 2:, 5] = np.nan, np.inf, -np.inf
    o, memory = np.zeros(out, np.float32), np.zeros(out, np.float32)
    Function(function({"x": image, "o": out}, out, *body))(x, o, memory)
    np.testing.assert_array_equal(o, pool2d(x, "max", (2, 2), (2, 2), (1, 1)))


def reduce(input_shape, output_shape, output_map, kinds, body, fill_value="0.0", acc_space="acc"):
    """fill and npu.reduce of %x_t into %acc; `body` reads %in and %acc_in and makes %r."""
    rank = len(input_shape)
    types = f"{memref_type(input_shape, 'sram')}, {memref_type(output_shape, acc_space)}"
    iterators = ", ".join(f'"{k}"' for k in kinds)
    return f"""{fill("acc", memref_type(output_shape, acc_space), fill_value)}
  "npu.reduce"(%x_t, %acc) ({{
  ^bb0(%in: f32, %acc_in: f32):
    {body}
    "npu.yield"(%r) : (f32) -> ()
  }}) {{indexing_maps = [{identity_map(rank)}, {output_map}], iterator_types = [{iterators}],
       {segments(1)}}}
    : ({types}) -> ()"""


SUM_OF_SQUARES = "%m = arith.mulf %in, %in : f32\n    %r = arith.addf %acc_in, %m : f32"
MAXIMUM = "%r = arith.maximumf %in, %acc_in : f32"
# Not a combiner of the accumulator and the rest: it cannot be reordered.
ALTERNATING = "%m = arith.subf %in, %acc_in : f32\n    %r = arith.negf %m : f32"
P, R = "parallel", "reduction"
REDUCTIONS = [
    ((2, 5, 7, 33), "affine_map<(n, y, x, c) -> (n, c)>", (P, R, R, P)),
    ((2, 5, 7, 33), "affine_map<(n, y, x, c) -> (n, 0, 0, c)>", (P, R, R, P)),
    ((3, 41), "affine_map<(m, c) -> (m)>", (P, R)),
    ((3, 5, 200), "affine_map<(m, k, c) -> (m)>", (P, R, R)),
    ((4, 6, 9), "affine_map<(a, b, c) -> (b)>", (R, P, R)),
    ((150,), "affine_map<(a) -> ()>", (R,)),
    ((3, 130, 2), "affine_map<(a, b, c) -> (c, a)>", (P, R, P)),
]


def reduced_shape(shape, map_text):
    names, results = (
        part.strip("()> ").replace(" ", "").split(",")
        for part in map_text.removeprefix("affine_map<").split("->")
    )
    sizes = dict(zip(names, shape))
    return tuple(sizes.get(r, 1) for r in results if r), names, results


@UNITS
@pytest.mark.parametrize(("shape", "map_text", "kinds"), REDUCTIONS)
@pytest.mark.parametrize("body", [SUM_OF_SQUARES, MAXIMUM], ids=["squares", "max"])
def test_reduce(shape, map_text, kinds, body, unit):
    out, names, results = reduced_shape(shape, map_text)
    initial = LOWEST if body == MAXIMUM else "1.0"
    text = function(
        {"x": shape, "o": out},
        out,
        reduce(shape, out, map_text, kinds, body, initial),
        copy_drain(out),
    )
    x = integers(RNG, shape)
    o, memory = np.full(out, np.nan, np.float32), np.full(out, np.nan, np.float32)
    Function(text, unit)(x, o, memory)
    axes = tuple(i for i, k in enumerate(kinds) if k == R)
    want = np.max(x, axis=axes) if body == MAXIMUM else 1 + np.sum(x * x, axis=axes)
    kept = [n for n in names if n in results]
    order = [kept.index(r) for r in results if r in kept]
    np.testing.assert_array_equal(o, want.transpose(order).reshape(out))
    assert np.isnan(memory).all()


@UNITS
def test_reduce_whose_order_matters_is_not_split(unit):
    shape, out = (2, 37), (2,)
    map_text = "affine_map<(m, c) -> (m)>"
    text = function(
        {"x": shape, "o": out},
        out,
        reduce(shape, out, map_text, (P, R), ALTERNATING),
        copy_drain(out),
    )
    x = integers(RNG, shape)
    o, memory = np.full(out, np.nan, np.float32), np.zeros(out, np.float32)
    Function(text, unit)(x, o, memory)
    want = np.zeros(out, np.float32)
    for c in range(shape[1]):
        want = -(x[:, c] - want)
    np.testing.assert_array_equal(o, want)


def test_row_maximum_keeps_nan():
    shape, out = (4, 45), (4,)
    map_text = "affine_map<(m, c) -> (m)>"
    text = function(
        {"x": shape, "o": out},
        out,
        reduce(shape, out, map_text, (P, R), MAXIMUM, LOWEST),
        copy_drain(out),
    )
    x = RNG.standard_normal(shape).astype(np.float32)
    x[0, 3], x[1, 44], x[2, 7] = np.nan, np.nan, np.inf
    o, memory = np.zeros(out, np.float32), np.zeros(out, np.float32)
    Function(text)(x, o, memory)
    np.testing.assert_array_equal(o, x.max(axis=1))


SHAPE = (2, 3, 5, 21)


@UNITS
@pytest.mark.parametrize(
    ("map_text", "shape", "view"),
    [
        (identity_map(4), SHAPE, lambda v: v),
        (channel_map(4, 1), SHAPE[3:], lambda v: v),
        (channel_map(4, 2), SHAPE[2:], lambda v: v),
        ("affine_map<(n, y, x, c) -> (n, c)>", (2, 21), lambda v: v[:, None, None, :]),
        (
            "affine_map<(n, y, x, c) -> (n, c, y, x)>",
            (2, 21, 3, 5),
            lambda v: v.transpose(0, 2, 3, 1),
        ),
        ("affine_map<(n, y, x, c) -> ()>", (), lambda v: v),
        ("affine_map<(n, y, x, c) -> (y, 0)>", (3, 1), lambda v: v.reshape(1, 3, 1, 1)),
        ("affine_map<(n, y, x, c) -> (y, 20 - c)>", (3, 21), lambda v: v[None, :, None, ::-1]),
        ("affine_map<(n, y, x, c) -> (y * 2 + x, c)>", (9, 21), None),
    ],
    ids=["same", "channel", "two", "image", "permuted", "scalar", "unit", "reversed", "window"],
)
def test_eltwise_maps(map_text, shape, view, unit):
    shapes = {"x": SHAPE, "y": shape, "o": SHAPE}
    big, small = memref_type(SHAPE, "sram"), memref_type(shape, "sram")
    same = identity_map(4)
    body = "%d = arith.subf %in0, %in1 : f32\n    %r = arith.mulf %d, %in0 : f32"
    op = eltwise([("x_t", same, big), ("y_t", map_text, small)], ("o_t", same, big), body, "%r")
    x, y = integers(RNG, SHAPE), integers(RNG, shape)
    o = np.full(SHAPE, np.nan, np.float32)
    Function(function(shapes, None, op), unit)(x, y, o)
    if view is None:
        rows = np.add.outer(2 * np.arange(3), np.arange(5))
        other = y[rows][None]
    else:
        other = view(y)
    np.testing.assert_array_equal(o, (x - other) * x)


def test_eltwise_with_integers_constants_and_captured_scalars():
    shapes = {"x": (3, 19), "o": (3, 19)}
    type_, same = memref_type((3, 19), "sram"), identity_map(2)
    body = """%two = arith.constant 2.0 : f32
    %small = arith.cmpf olt, %in0, %two : f32
    %nan = arith.cmpf uno, %in0, %in0 : f32
    %either = arith.ori %small, %nan : i1
    %i = arith.fptosi %in0 : f32 to i32
    %j = arith.sitofp %i : i32 to f32
    %k = arith.mulf %j, %outer : f32
    %r = arith.select %either, %in0, %k : f32"""
    op = eltwise([("x_t", same, type_)], ("o_t", same, type_), body, "%r")
    x = RNG.uniform(-5, 9, (3, 19)).astype(np.float32)
    x[1, 4] = np.nan
    o = np.zeros((3, 19), np.float32)
    Function(function(shapes, None, "%outer = arith.constant 3.0 : f32", op))(x, o)
    with np.errstate(invalid="ignore"):
        want = np.where((x < 2) | np.isnan(x), x, np.trunc(x) * 3).astype(np.float32)
    np.testing.assert_array_equal(o, want)


def test_fill_of_a_strided_tile_leaves_the_rest():
    tile = 'memref<2x3x5xf32, strided<[70, 10, 1], offset: 12>, #npu.space<"sram">>'
    whole = memref_type((2, 7, 10), "sram")
    body = f"""%v = memref.subview %o_t[0, 1, 2] [2, 3, 5] [1, 1, 1] : {whole} to {tile}
  "npu.fill"(%v) {{value = 7.0 : f32}} : ({tile}) -> ()"""
    o = np.zeros((2, 7, 10), np.float32)
    Function(function({"o": (2, 7, 10)}, None, body))(o)
    want = np.zeros_like(o)
    want[:, 1:4, 2:7] = 7
    np.testing.assert_array_equal(o, want)
