"""Windows over padded images: taps that meet padding are left out, exact on every vector unit."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from jit import AVX2, AVX512, SSE, Function, memref_type, segments
from npu_text import compute, fill, identity_map, window
from reference import conv2d, depthwise_conv2d, integers, out_extent, pool2d

UNITS = pytest.mark.parametrize("unit", [AVX512, AVX2, SSE], ids=["avx512", "avx2", "sse"])
RNG = np.random.default_rng(23)
LOWEST = "0xFF800000"
KINDS = ("conv2d", "depthwise_conv2d", "max", "sum")


@dataclass(frozen=True)
class Case:
    """An image, its padding (top, bottom, left, right), a window, and output rows of a tile.

    block: channels of a block of weights.
    """

    image: tuple[int, int, int, int]
    padding: tuple[int, int, int, int]
    taps: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    band: int | None = None
    block: int = 8

    @property
    def padded(self):
        (n, h, w, c), (top, bottom, left, right) = self.image, self.padding
        return n, h + top + bottom, w + left + right, c

    @property
    def out(self):
        return tuple(
            out_extent(*a)
            for a in zip(self.padded[1:3], self.taps, self.strides, self.dilations, strict=True)
        )

    @property
    def rows(self):
        """Output rows of a tile."""
        return self.band or self.out[0]

    @property
    def tile(self):
        n, _, w, c = self.padded
        rows = (self.rows - 1) * self.strides[0] + (self.taps[0] - 1) * self.dilations[0] + 1
        return n, rows, w, c


# Of few channels, in rows of many windows: convolutions read the source of the padding move.
FEW_CHANNELS = [
    Case((2, 13, 70, 3), (1, 1, 1, 1), (3, 3), (2, 2)),
    Case((1, 12, 45, 3), (1, 1, 1, 1), (3, 3), band=4),
    Case((1, 16, 66, 1), (2, 2, 2, 2), (3, 3), (1, 1), (2, 2), band=4),
    Case((1, 4, 40, 4), (4, 4, 5, 5), (3, 3), band=5),
    Case((1, 12, 45, 3), (1, 1, 1, 1), (3, 3), band=4, block=24),
    Case((1, 19, 80, 8), (3, 3, 2, 3), (7, 7), (2, 2), band=2),
]
CASES = [
    Case((1, 7, 7, 20), (1, 1, 1, 1), (3, 3)),
    Case((1, 14, 14, 16), (1, 1, 1, 1), (3, 3)),
    Case((1, 14, 14, 16), (1, 1, 1, 1), (3, 3), block=24),
    Case((2, 9, 30, 5), (1, 1, 1, 1), (3, 3), (2, 2)),
    Case((1, 8, 1, 3), (31, 32, 0, 0), (64, 1)),
    Case((1, 40, 1, 1), (9, 9, 0, 0), (20, 1), (4, 1)),
    Case((1, 6, 5, 17), (2, 2, 2, 2), (5, 5), (1, 1)),
    Case((1, 6, 9, 8), (4, 4, 4, 4), (3, 3), (1, 1), (3, 2)),
    Case((1, 2, 3, 4), (5, 6, 6, 5), (3, 3)),
    Case((1, 12, 11, 33), (0, 1, 0, 1), (3, 3), (2, 2)),
    Case((1, 5, 40, 2), (0, 0, 3, 3), (1, 7)),
    Case((1, 9, 9, 4), (6, 6, 6, 6), (13, 13)),
    *FEW_CHANNELS,
    Case((1, 4, 4, 6), (2, 3, 0, 0), (1, 1)),
    Case((1, 12, 13, 16), (1, 1, 1, 1), (3, 3), band=4),
    Case((1, 12, 13, 16), (1, 1, 1, 1), (3, 3), (2, 2), band=2),
    Case((2, 16, 1, 3), (15, 16, 0, 0), (32, 1), band=4),
    Case((1, 8, 6, 9), (4, 4, 1, 1), (3, 3), (1, 1), (2, 1), band=3),
]
EACH = pytest.mark.parametrize(
    "case", CASES, ids=lambda c: f"{c.image}-{c.taps}-{c.band}-{c.block}"
)


def of_kind(case, kind):
    """Operands beside the image, the compute op's name and attributes, output and fill value."""
    channels, (rows, columns) = case.image[3], case.taps
    attributes = window(case.strides, case.dilations)
    out = case.image[0], *case.out
    if kind == "conv2d":
        out = (*out, 2, case.block)
        return {"w": (2, rows, columns, channels, case.block)}, kind, attributes, out, "0.0"
    if kind == "depthwise_conv2d":
        return {"w": (rows, columns, channels)}, kind, attributes, (*out, channels), "0.0"
    attributes = f'kind = "{kind}", window = array<i64: {rows}, {columns}>, {attributes}'
    return {}, "pool2d", attributes, (*out, channels), LOWEST if kind == "max" else "0.0"


def text_of(case, kind):
    """main(%x, weights, %o, %tile, %acc): bands of the output, each from a padded tile."""
    weights, name, attributes, out, neutral = of_kind(case, kind)
    result = (out[0], case.rows, *out[2:])
    arguments = {"x": case.image, **weights, "o": out, "tile": case.tile, "sums": result}
    signature = ", ".join(f"%{k}: {memref_type(s)}" for k, s in arguments.items())
    casts = [
        f"%{k}_t = memref.memory_space_cast %{k} : {memref_type(s)} to {memref_type(s, 'sram')}"
        for k, s in {"image": case.tile, **weights}.items()
    ]
    casts[0] = casts[0].replace("cast %image :", "cast %tile :")
    body = f"""
    {fill("acc", memref_type(result, "acc"), neutral)}
    {padding_move(case, neutral)}
    {compute(name, attributes, {"image": case.tile, **weights}, result)}
    {drain(result, out)}"""
    return f"""func.func @main({signature}) {{
  {" ".join(casts)}
  %acc = memref.memory_space_cast %sums : {memref_type(result)} to {memref_type(result, "acc")}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %left = arith.constant {case.padding[2]} : index
  {bands(case, body)}
  return
}}"""


def bands(case, body):
    if case.band is None:
        return f"%i = arith.constant 0 : index\n{body}"
    return f"""%n = arith.constant {case.out[0] // case.band} : index
  scf.for %i = %c0 to %n step %c1 {{{body}
  }}"""


def padding_move(case, neutral):
    """The rows of the image that a band reads, clamped, into their place in the tile."""
    (n, h, w, c), top, step = case.image, case.padding[0], case.rows * case.strides[0]
    if case.band is None:
        source, low = memref_type(case.image), "%top"
        view = (
            f"%top = arith.constant {top} : index\n    %v = memref.cast %x : {source} to {source}"
        )
    else:
        row, low = w * c, "%top"
        source = f"memref<{n}x?x{w}x{c}xf32, strided<[{h * row}, {row}, {c}, 1], offset: ?>>"
        end = case.tile[1]
        view = f"""%first = affine.max affine_map<(i) -> (i * {step} - {top}, 0)>(%i)
    %from = affine.min affine_map<(a) -> (a, {h})>(%first)
    %last = affine.min affine_map<(i) -> (i * {step} - {top} + {end}, {h})>(%i)
    %to = affine.max affine_map<(a, b) -> (a, b)>(%from, %last)
    %rows = affine.apply affine_map<(a, b) -> (b - a)>(%from, %to)
    %before = affine.max affine_map<(i) -> ({top} - i * {step}, 0)>(%i)
    %top = affine.min affine_map<(a) -> (a, {end})>(%before)
    %v = memref.subview %x[0, %from, 0, 0] [{n}, %rows, {w}, {c}] [1, 1, 1, 1]
      : {memref_type(case.image)} to {source}"""
    tile = memref_type(case.tile, "sram")
    return f"""{view}
    %t = "npu.dma_start"(%v, %image_t, %c0, {low}, %left, %c0)
      {{pad_value = {neutral} : f32, permutation = array<i64: 0, 1, 2, 3>}}
      : ({source}, {tile}, index, index, index, index) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()"""


def drain(result, out):
    """Into the rows of the band in %o."""
    strides = [math.prod(out[d + 1 :]) for d in range(len(out))]
    layout = f"strided<{strides}, offset: ?>"
    dims = "x".join(map(str, result))
    part = f"memref<{dims}xf32, {layout}>"
    chip = f'memref<{dims}xf32, {layout}, #npu.space<"sram">>'
    zeros, ones = ", 0" * (len(out) - 2), ", ".join(["1"] * len(out))
    maps = f"[{identity_map(len(out))}, {identity_map(len(out))}]"
    return f"""%y = affine.apply affine_map<(i) -> (i * {result[1]})>(%i)
    %part = memref.subview %o[0, %y{zeros}] [{", ".join(map(str, result))}] [{ones}]
      : {memref_type(out)} to {part}
    %o_t = memref.memory_space_cast %part : {part} to {chip}
    "npu.drain"(%acc, %o_t) ({{
    ^bb0(%a: f32, %old: f32):
      "npu.yield"(%a) : (f32) -> ()
    }}) {{indexing_maps = {maps}, {segments(0, accumulator=True)}}}
      : ({memref_type(result, "acc")}, {chip}) -> ()"""


def run(case, kind, unit, x=None, w=None):
    """Outputs, what they should be, and the tile that the padding move was to make."""
    weights, _, _, out, neutral = of_kind(case, kind)
    x = integers(RNG, case.image) if x is None else x
    w = [integers(RNG, shape) for shape in weights.values()] if w is None else [w]
    o, tile = np.full(out, np.nan, np.float32), np.full(case.tile, np.nan, np.float32)
    sums = np.zeros((out[0], case.rows, *out[2:]), np.float32)
    Function(text_of(case, kind), unit)(x, *w, o, tile, sums)
    top, bottom, left, right = case.padding
    value = -np.inf if kind == "max" else 0
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)
    return o, tile, reference(case, kind, padded, *w)


def reference(case, kind, padded, *w):
    if kind == "conv2d":
        return conv2d(padded, *w, case.strides, case.dilations)
    if kind == "depthwise_conv2d":
        return depthwise_conv2d(padded, *w, case.strides, case.dilations)
    return pool2d(padded, kind, case.taps, case.strides, case.dilations)


@UNITS
@EACH
@pytest.mark.parametrize("kind", KINDS)
def test_padded_windows(case, kind, unit):
    o, _, want = run(case, kind, unit)
    np.testing.assert_array_equal(o, want)


@UNITS
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("band", [None, 4], ids=["whole", "bands"])
def test_small_windows_read_the_source_of_the_padding_move(kind, band, unit):
    case = Case((1, 12, 13, 16), (1, 1, 1, 1), (3, 3), band=band)
    assert np.isnan(run(case, kind, unit)[1]).all()


@UNITS
@pytest.mark.parametrize("kind", KINDS)
def test_large_windows_and_matrix_products_read_the_padded_tile(kind, unit):
    case = Case((1, 9, 9, 4), (6, 6, 6, 6), (13, 13))
    assert not np.isnan(run(case, kind, unit)[1]).any()


@UNITS
@pytest.mark.parametrize(
    "case", FEW_CHANNELS, ids=lambda c: f"{c.image}-{c.taps}-{c.band}-{c.block}"
)
def test_convolutions_over_few_channels_read_the_source_of_the_padding_move(case, unit):
    assert np.isnan(run(case, "conv2d", unit)[1]).all()


def in_planes(case):
    """The same as `text_of` with an image, and its tile, that have channels first."""
    text = text_of(case, "conv2d")
    (n, h, w, c), (_, height, width, _) = case.image, case.tile
    planes, tile = (n, c, h, w), memref_type((n, c, height, width), "sram")
    plane = height * width
    seen = (
        f"memref<{n}x{height}x{width}x{c}xf32, "
        f'strided<[{c * plane}, {width}, 1, {plane}]>, #npu.space<"sram">>'
    )
    rows = f"memref<{n}x?x{w}x{c}xf32, strided<[{h * w * c}, {w * c}, {c}, 1], offset: ?>>"
    layout = f"strided<[{h * w * c}, {h * w}, {w}, 1], offset: ?>"
    for old, new in (
        (
            f"%tile : {memref_type(case.tile)} to {memref_type(case.tile, 'sram')}",
            f"%tile : {memref_type((n, c, height, width))} to {tile}\n  %view = memref.transpose "
            f"%image_t (n, c, y, x) -> (n, y, x, c) : {tile} to {seen}",
        ),
        (f"%tile: {memref_type(case.tile)}", f"%tile: {memref_type((n, c, height, width))}"),
        ("%image_t, %c0, %top, %left, %c0)", "%image_t, %c0, %c0, %top, %left)"),
        (f"{memref_type(case.tile, 'sram')}, index", f"{tile}, index"),
        ('"npu.conv2d"(%image_t,', '"npu.conv2d"(%view,'),
        (memref_type(case.tile, "sram"), seen),
        (memref_type(case.image), memref_type(planes)),
        (f"[0, %from, 0, 0] [{n}, %rows, {w}, {c}]", f"[0, 0, %from, 0] [{n}, {c}, %rows, {w}]"),
        (rows, f"memref<{n}x{c}x?x{w}xf32, {layout}>"),
    ):
        text = text.replace(old, new)
    return text


@UNITS
@pytest.mark.parametrize(
    "case", FEW_CHANNELS, ids=lambda c: f"{c.image}-{c.taps}-{c.band}-{c.block}"
)
def test_images_in_planes_are_read_where_they_lie(case, unit):
    (top, bottom, left, right), (n, height, width, c) = case.padding, case.tile
    x = integers(RNG, case.image)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    w = integers(RNG, (2, *case.taps, c, case.block))
    o = np.full((n, *case.out, 2, case.block), np.nan, np.float32)
    tile = np.full((n, c, height, width), np.nan, np.float32)
    sums = np.zeros((n, case.rows, *o.shape[2:]), np.float32)
    planes = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    Function(in_planes(case), unit)(planes, w, o, tile, sums)
    np.testing.assert_array_equal(o, reference(case, "conv2d", padded, w))
    assert np.isnan(tile).all()


@UNITS
@pytest.mark.parametrize("band", [None, 4], ids=["whole", "bands"])
def test_weights_that_meet_only_padding_do_not_matter(band, unit):
    """Infinity times the padding would be NaN."""
    case = Case((1, 4, 4, 16), (4, 4, 1, 1), (5, 3), band=band)
    w = integers(RNG, (5, 3, 16))
    w[0] = np.inf
    x = np.abs(integers(RNG, case.image)) + 1
    o, _, _ = run(case, "depthwise_conv2d", unit, x, w)
    assert np.isfinite(o[:, :4]).all()
    assert np.isposinf(o[:, 4:]).all()


def test_a_tile_that_others_read_too_is_made():
    """The move stays where somebody else reads the tile, here a second pool."""
    case = Case((1, 7, 7, 8), (1, 1, 1, 1), (3, 3))
    text = text_of(case, "sum")
    again = text[text.index('"npu.pool2d"') : text.index("%y = affine")]
    text = text.replace(again, again + again)
    x, o = integers(RNG, case.image), np.zeros((1, 7, 7, 8), np.float32)
    tile, sums = np.full(case.tile, np.nan, np.float32), np.zeros(o.shape, np.float32)
    Function(text)(x, o, tile, sums)
    assert not np.isnan(tile).any()
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    np.testing.assert_array_equal(o, 2 * pool2d(padded, "sum", (3, 3), (1, 1), (1, 1)))


def test_a_source_that_is_overwritten_is_moved_first():
    """The result goes where the image came from: windows must not read their own output."""
    case = Case((1, 7, 7, 8), (1, 1, 1, 1), (3, 3))
    text = text_of(case, "sum").replace("memref.subview %o[", "memref.subview %x[")
    x, o = integers(RNG, case.image), np.zeros((1, 7, 7, 8), np.float32)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    tile, sums = np.full(case.tile, np.nan, np.float32), np.zeros(o.shape, np.float32)
    Function(text)(x, o, tile, sums)
    np.testing.assert_array_equal(x, pool2d(padded, "sum", (3, 3), (1, 1), (1, 1)))
