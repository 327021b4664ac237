"""dma_start on vectors: copies of tiles, re-layouts, padding with static and run-time extents."""

import itertools
import re

import numpy as np
import pytest
from jit import AVX2, AVX512, SSE, Function, Unit, memref_type
from reference import integers

UNITS = pytest.mark.parametrize("unit", [AVX512, AVX2, SSE], ids=["avx512", "avx2", "sse"])
RNG = np.random.default_rng(3)


def dma(source, source_type, target, target_type, order, low=(), pad=None):
    operands = ", ".join([f"%{source}", f"%{target}", *(f"%{v}" for v in low)])
    types = ", ".join([source_type, target_type, *["index"] * len(low)])
    extra = f"pad_value = {pad} : f32, " if pad is not None else ""
    sizes = f"operandSegmentSizes = array<i32: 1, 1, {len(low)}>"
    order = ": " + ", ".join(map(str, order)) if order else ""
    return f"""%t = "npu.dma_start"({operands}) {{{extra}{sizes}, permutation = array<i64{order}>}}
    : ({types}) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()"""


def main(source, target, *body):
    lines = "\n  ".join(body)
    return f"func.func @main(%x: {source}, %o: {target}) {{\n  {lines}\n  return\n}}"


@UNITS
@pytest.mark.parametrize("shape", [(5,), (3, 7), (2, 3, 5, 33), (1, 56, 4, 64), ()], ids=str)
def test_copy_of_whole_buffers(shape, unit):
    type_, tile = memref_type(shape), memref_type(shape, "sram")
    cast = f"%s = memref.memory_space_cast %o : {type_} to {tile}"
    move = dma("x", type_, "s", tile, range(len(shape)))
    x, o = integers(RNG, shape), np.full(shape, np.nan, np.float32)
    x = np.ascontiguousarray(x).reshape(shape)
    Function(main(type_, type_, cast, move), unit)(x, o)
    np.testing.assert_array_equal(o, x)


def test_copy_of_integers():
    type_ = memref_type((7, 9), element="i64")
    x, o = RNG.integers(-9, 9, (7, 9)), np.zeros((7, 9), np.int64)
    Function(main(type_, type_, dma("x", type_, "o", type_, range(2))))(x, o)
    np.testing.assert_array_equal(o, x)


def test_copy_into_a_slice_leaves_the_rest():
    source, whole = memref_type((4, 6)), memref_type((4, 10))
    part = "memref<4x6xf32, strided<[10, 1], offset: 3>>"
    view = f"%v = memref.subview %o[0, 3] [4, 6] [1, 1] : {whole} to {part}"
    x, o = integers(RNG, (4, 6)), np.full((4, 10), 9, np.float32)
    Function(main(source, whole, view, dma("x", source, "v", part, range(2))))(x, o)
    np.testing.assert_array_equal(o[:, 3:9], x)
    assert (o[:, :3] == 9).all() and (o[:, 9:] == 9).all()


@UNITS
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 17, 24), (2, 33, 12)], ids=str)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_relayout(shape, order, unit):
    moved = tuple(shape[i] for i in order)
    x, o = integers(RNG, shape), np.full(moved, np.nan, np.float32)
    source, target = memref_type(shape), memref_type(moved)
    Function(main(source, target, dma("x", source, "o", target, order)), unit)(x, o)
    np.testing.assert_array_equal(o, x.transpose(order))


@pytest.mark.parametrize("lanes", [1, 3, 7, 12])
def test_relayout_by_any_number_of_lanes(lanes):
    x, o = integers(RNG, (17, 24)), np.full((24, 17), np.nan, np.float32)
    source, target = memref_type((17, 24)), memref_type((24, 17))
    Function(main(source, target, dma("x", source, "o", target, (1, 0))), Unit(lanes, 16))(x, o)
    np.testing.assert_array_equal(o, x.T)


@pytest.mark.parametrize("shape", [(1, 64, 49), (2, 3, 50), (1, 50, 3), (1, 40, 1)], ids=str)
def test_relayout_of_images(shape):
    moved = (shape[0], shape[2], shape[1])
    x, o = integers(RNG, shape), np.full(moved, np.nan, np.float32)
    source, target = memref_type(shape), memref_type(moved)
    Function(main(source, target, dma("x", source, "o", target, (0, 2, 1))))(x, o)
    np.testing.assert_array_equal(o, x.transpose(0, 2, 1))


@UNITS
@pytest.mark.parametrize("shape", [(16, 16), (31, 111), (48, 33), (20, 224), (17, 15)], ids=str)
def test_relayout_into_rows_that_begin_anywhere(shape, unit):
    """Squares as wide as a vector, and what is left of them, where no line is aligned."""
    rows, columns = shape
    source, room = memref_type(shape), memref_type((columns, rows + 5))
    part = f"memref<{columns}x{rows}xf32, strided<[{rows + 5}, 1], offset: 3>>"
    view = f"%v = memref.subview %o[0, 3] [{columns}, {rows}] [1, 1] : {room} to {part}"
    x, o = integers(RNG, shape), np.full((columns, rows + 5), 9, np.float32)
    Function(main(source, room, view, dma("x", source, "v", part, (1, 0))), unit)(x, o)
    np.testing.assert_array_equal(o[:, 3:-2], x.T)
    assert (o[:, :3] == 9).all() and (o[:, -2:] == 9).all()


@pytest.mark.parametrize(
    ("element", "unit", "side"),
    [
        ("f32", AVX512, 16),
        ("f32", AVX2, 8),
        ("f32", SSE, 4),
        ("f16", AVX512, 8),
        ("f64", AVX512, 8),
    ],
)
def test_squares_of_a_relayout_are_lines_of_f32(element, unit, side):
    source, target = memref_type((48, 64), element=element), memref_type((64, 48), element=element)
    function = Function(main(source, target, dma("x", source, "o", target, (1, 0))), unit)
    widths = set(re.findall(r"vector\.store .*, vector<(\d+)x", function.vector_text))
    assert widths == {str(side)}
    numbers = RNG.integers(-99, 99, (48, 64)).astype(f"f{int(element[1:]) // 8}")
    moved = np.zeros((64, 48), numbers.dtype)
    function(numbers, moved)
    np.testing.assert_array_equal(moved, numbers.T)


@UNITS
@pytest.mark.parametrize(
    ("shape", "room", "low"),
    [
        ((1, 4, 5, 3), (1, 6, 7, 3), (0, 1, 1, 0)),
        ((2, 5, 9, 16), (2, 5, 12, 16), (0, 0, 3, 0)),
        ((1, 3, 3, 5), (2, 4, 5, 8), (1, 0, 1, 2)),
        ((1, 1, 1, 1), (1, 3, 3, 20), (0, 1, 2, 7)),
        ((4,), (9,), (5,)),
    ],
    ids=str,
)
def test_padded_move(shape, room, low, unit):
    source, target = memref_type(shape), memref_type(room)
    starts = [f"%l{i} = arith.constant {v} : index" for i, v in enumerate(low)]
    names = [f"l{i}" for i in range(len(low))]
    move = dma("x", source, "o", target, range(len(shape)), names, "-2.5")
    x, o = integers(RNG, shape), np.full(room, np.nan, np.float32)
    Function(main(source, target, *starts, move), unit)(x, o)
    want = np.full(room, -2.5, np.float32)
    want[tuple(slice(a, a + n) for a, n in zip(low, shape))] = x
    np.testing.assert_array_equal(o, want)


@UNITS
@pytest.mark.parametrize("channels", [3, 24, 64])
def test_padded_tile_clamped_at_the_borders(channels, unit):
    """Bands of a padded image: source rows and landing rows are known at run time only."""
    h, w, band, pad = 10, 6, 4, 2
    image, tiles = (1, h, w, channels), (h + 2 * pad - band + 1, 1, band, w + 2, channels)
    row = w * channels
    source = (
        f"memref<1x?x{w}x{channels}xf32, strided<[{h * row}, {row}, {channels}, 1], offset: ?>>"
    )
    size = band * (w + 2) * channels
    inner = f"{band}x{w + 2}x{channels}xf32"
    tile = f"memref<1x{inner}, strided<[{size}, {(w + 2) * channels}, {channels}, 1], offset: ?>>"
    body = f"""%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {tiles[0]} : index
  scf.for %i = %c0 to %n step %c1 {{
    %from = affine.max affine_map<(i) -> (i - {pad}, 0)>(%i)
    %to = affine.min affine_map<(i) -> (i - {pad} + {band}, {h})>(%i)
    %rows = affine.apply affine_map<(a, b) -> (b - a)>(%from, %to)
    %low = affine.max affine_map<(i) -> ({pad} - i, 0)>(%i)
    %v = memref.subview %x[0, %from, 0, 0] [1, %rows, {w}, {channels}] [1, 1, 1, 1]
      : {memref_type(image)} to {source}
    %s = memref.subview %o[%i, 0, 0, 0, 0] [1, 1, {band}, {w + 2}, {channels}] [1, 1, 1, 1, 1]
      : {memref_type(tiles)} to {tile}
    {dma("v", source, "s", tile, range(4), ("c0", "low", "c1", "c0"), "7.0")}
  }}"""
    x, o = integers(RNG, image), np.full(tiles, np.nan, np.float32)
    Function(main(memref_type(image), memref_type(tiles), body), unit)(x, o)
    padded = np.pad(x, ((0, 0), (pad, pad), (1, 1), (0, 0)), constant_values=7)
    want = np.stack([padded[:, i : i + band] for i in range(tiles[0])])
    np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("width", [2, 7, 40])
def test_padded_move_of_a_run_time_width(width):
    """The innermost extent itself is clamped: vectors, then single elements."""
    room, whole = width + 9, width + 4
    source = f"memref<3x?xf32, strided<[{whole}, 1], offset: ?>>"
    body = f"""%c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = affine.apply affine_map<(i) -> ({width} + i - 4)>(%c4)
  %v = memref.subview %x[0, %c4] [3, %n] [1, 1] : {memref_type((3, whole))} to {source}
  {dma("v", source, "o", memref_type((3, room)), range(2), ("c0", "c4"), "0.0")}"""
    x, o = integers(RNG, (3, whole)), np.full((3, room), np.nan, np.float32)
    Function(main(memref_type((3, whole)), memref_type((3, room)), body))(x, o)
    want = np.zeros((3, room), np.float32)
    want[:, 4 : 4 + width] = x[:, 4:]
    np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("low", [0, 2, 5])
@pytest.mark.parametrize("sizes", [(3, 0), (0, 4)], ids=str)
def test_tile_beside_its_image_is_padding(sizes, low):
    source = f"memref<{sizes[0]}x{sizes[1]}xf32, strided<[4, 1]>>"
    room = tuple(size or 5 for size in sizes)
    body = f"""%c0 = arith.constant 0 : index
  %low = arith.constant {low} : index
  %v = memref.subview %x[0, 0] [{sizes[0]}, {sizes[1]}] [1, 1] : memref<3x4xf32> to {source}"""
    lows = ["low" if size == 0 else "c0" for size in sizes]
    move = dma("v", source, "o", memref_type(room), range(2), lows, "-2.5")
    o = np.full(room, np.nan, np.float32)
    Function(main("memref<3x4xf32>", memref_type(room), body, move))(integers(RNG, (3, 4)), o)
    assert (o == -2.5).all()


def test_permuted_and_padded_move():
    shape, room = (1, 3, 5, 6), (1, 7, 8, 3)
    source, target = memref_type(shape), memref_type(room)
    body = "%c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index"
    move = dma("x", source, "o", target, (0, 2, 3, 1), ("c0", "c1", "c1", "c0"), "0.0")
    x, o = integers(RNG, shape), np.full(room, np.nan, np.float32)
    Function(main(source, target, body, move))(x, o)
    want = np.zeros(room, np.float32)
    want[:, 1:6, 1:7] = x.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(o, want)


@UNITS
@pytest.mark.parametrize("pixels", [(7, 7), (13, 13), (5, 27), (3, 55), (2, 16), (1, 1)], ids=str)
@pytest.mark.parametrize("channels", [2, 3, 5, 24, 64])
@pytest.mark.parametrize("back", [False, True], ids=["load", "store"])
def test_relayout_of_tiles(pixels, channels, back, unit):
    """Between a part of an image with the channels first and a tile with the channels last."""
    (h, w), whole = pixels, (1, channels, pixels[0] + 3, pixels[1])
    plane, tile_shape = whole[2] * w, (1, h, w, channels)
    part = f"memref<1x{channels}x{h}x{w}xf32, strided<[{channels * plane}, {plane}, {w}, 1], offset: {w}>>"
    view = f"""%p = memref.subview %x[0, 0, 1, 0] [1, {channels}, {h}, {w}] [1, 1, 1, 1]
      : {memref_type(whole)} to {part}"""
    x, o = integers(RNG, whole), integers(RNG, tile_shape)
    want, rows = x.copy(), x[:, :, 1 : 1 + h].transpose(0, 2, 3, 1).copy()
    if back:
        move = dma("o", memref_type(tile_shape), "p", part, (0, 3, 1, 2))
        want[:, :, 1 : 1 + h] = o.transpose(0, 3, 1, 2)
    else:
        move = dma("p", part, "o", memref_type(tile_shape), (0, 2, 3, 1))
    text = main(memref_type(whole), memref_type(tile_shape), view, move)
    Function(text, unit)(x, o)
    np.testing.assert_array_equal(x, want)
    if not back:
        np.testing.assert_array_equal(o, rows)


@UNITS
@pytest.mark.parametrize("width", [0, 1, 7, 8, 9, 40])
@pytest.mark.parametrize("channels", [3, 4, 24])
def test_relayout_of_a_run_time_width(width, channels, unit):
    room, whole = width + 9, width + 4
    source = f"memref<{channels}x?xf32, strided<[{whole}, 1], offset: ?>>"
    body = f"""%c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = affine.apply affine_map<(i) -> ({width} + i - 4)>(%c4)
  %v = memref.subview %x[0, %c4] [{channels}, %n] [1, 1] : {memref_type((channels, whole))} to {source}
  {dma("v", source, "o", memref_type((room, channels)), (1, 0), ("c4", "c0"), "0.0")}"""
    x, o = integers(RNG, (channels, whole)), np.full((room, channels), np.nan, np.float32)
    text = main(memref_type((channels, whole)), memref_type((room, channels)), body)
    Function(text, unit)(x, o)
    want = np.zeros((room, channels), np.float32)
    want[4 : 4 + width] = x[:, 4:].T
    np.testing.assert_array_equal(o, want)
