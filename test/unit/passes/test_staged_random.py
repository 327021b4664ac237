"""Random shapes, windows, pads and tiles: what is accepted covers its output once and is exact.

With given tiles every border case of a tile is met; with chosen tiles the memories must suffice.
What is found here is shrunk; test_random_programs.py runs many more.
"""

import re
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from staged import kernel_text as k
from staged.run import check

EXAMPLES = 20


def divisors(extent: int) -> list[int]:
    """Tile sizes of a loop: 0 for whole, else a divisor."""
    return [0, *[d for d in range(1, extent + 1) if extent % d == 0]]


@st.composite
def windows(draw, image):
    def pair(low, high):
        return draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window = k.Window(pair(1, 3), pair(1, 3), pair(1, 2), pair(0, 4), pair(0, 4))
    assume(min(window.output(image)) >= 1)
    return window


def tile_of(draw, extents) -> list[int]:
    return [draw(st.sampled_from(divisors(extent))) for extent in extents]


@st.composite
def convolutions(draw):
    image = (draw(st.integers(1, 2)), draw(st.integers(1, 8)), draw(st.integers(1, 8)), 4)
    window, blocks = draw(windows(image[1:3])), draw(st.integers(1, 3))
    out = window.output(image[1:3])
    tile = [*tile_of(draw, (image[0], *out, blocks)), 0]
    reduction = tile_of(draw, (*window.taps, image[3]))
    return k.conv2d(
        image,
        blocks,
        4,
        window,
        epilogue=draw(st.booleans()),
        schedule=k.schedule(tile, reduction),
    )


@st.composite
def channelwise(draw):
    """Depthwise convolutions and pools."""
    image = (draw(st.integers(1, 2)), draw(st.integers(1, 8)), draw(st.integers(1, 8)), 6)
    window = draw(windows(image[1:3]))
    tile = tile_of(draw, (image[0], *window.output(image[1:3]), image[3]))
    schedule = k.schedule(tile, tile_of(draw, window.taps))
    kind = draw(st.sampled_from(["max", "sum", "depthwise"]))
    if kind == "depthwise":
        return k.depthwise_conv2d(image, window, schedule=schedule)
    return k.pool2d(image, window, kind, schedule=schedule)


@st.composite
def grouped(draw):
    image = (1, draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.integers(1, 3)), 2)
    window, blocks = draw(windows(image[1:3])), draw(st.integers(1, 2))
    tile = [*tile_of(draw, (1, *window.output(image[1:3]))), 1, *tile_of(draw, (blocks,)), 0]
    return k.grouped_conv2d(image, blocks, 2, window, schedule=k.schedule(tile))


@st.composite
def others(draw):
    a, b, c = (draw(st.integers(1, 8)) for _ in range(3))
    kind = draw(st.sampled_from(["matmul", "pointwise", "mean", "eltwise", "transpose"]))
    if kind == "pointwise":
        rows = draw(st.integers(1, 20))
        tile = [1, *tile_of(draw, (a, b)), 0]
        return k.pointwise_conv2d((2, c, b, rows), a, schedule=k.schedule(tile))
    if kind == "matmul":
        tile, reduction = [*tile_of(draw, (a, b)), 0], tile_of(draw, (c,))
        return k.matmul(a, c, b, 4, schedule=k.schedule(tile, reduction))
    if kind == "mean":
        tile, reduction = tile_of(draw, (a, c)), tile_of(draw, (b, 4))
        return k.mean((a, b, 4, c), schedule=k.schedule(tile, reduction))
    if kind == "eltwise":
        return k.add_relu((a, b, c), schedule=k.schedule(tile_of(draw, (a, b, c))))
    order = draw(st.permutations(range(3)))
    tile = tile_of(draw, [(a, b, c)[i] for i in order])
    return k.transpose((a, b, c), order, schedule=k.schedule(tile))


@st.composite
def pipelined(draw, kernels):
    """A kernel whose schedule also has an order of its loops and says how many buffers."""
    kernel = draw(kernels)
    (sizes,) = re.search(r"tile = array<i64(?:: (.*?))?>", kernel.text).groups()
    order = draw(st.permutations(range(len(sizes.split(",")) if sizes else 0)))
    values = f": {', '.join(map(str, order))}" if order else ""
    buffers, acc_buffers = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    added = (
        f"order = array<i64{values}>, buffers = {buffers} : i64, acc_buffers = {acc_buffers} : i64"
    )
    return replace(kernel, text=kernel.text.replace("{tile =", f"{{{added}, tile ="))


@settings(max_examples=EXAMPLES)
@given(pipelined(convolutions()), st.integers(0, 99))
def test_random_tiles_of_convolutions(kernel, seed):
    check(kernel, "edge", seed)


@settings(max_examples=EXAMPLES)
@given(pipelined(channelwise()), st.integers(0, 99))
def test_random_tiles_of_windows_over_channels(kernel, seed):
    check(kernel, "edge", seed)


@settings(max_examples=EXAMPLES // 2)
@given(pipelined(grouped()), st.integers(0, 99))
def test_random_tiles_of_grouped_convolutions(kernel, seed):
    check(kernel, "edge", seed)


@settings(max_examples=EXAMPLES)
@given(pipelined(others()), st.integers(0, 99))
def test_random_tiles_of_other_kernels(kernel, seed):
    check(kernel, "edge", seed)


@st.composite
def unscheduled(draw):
    side, channels = draw(st.integers(4, 14)), draw(st.sampled_from([3, 8, 24]))
    image = (1, side, draw(st.integers(4, 14)), channels)
    kind = draw(st.sampled_from(["conv", "depthwise", "pool", "matmul", "mean", "eltwise"]))
    if kind == "conv":
        return k.conv2d(image, draw(st.integers(1, 6)), 8, draw(windows(image[1:3])))
    if kind == "depthwise":
        return k.depthwise_conv2d(image, draw(windows(image[1:3])))
    if kind == "pool":
        return k.pool2d(image, draw(windows(image[1:3])), draw(st.sampled_from(["max", "sum"])))
    if kind == "matmul":
        return k.matmul(side, draw(st.integers(1, 700)), draw(st.integers(1, 9)), 8)
    return k.mean(image) if kind == "mean" else k.add_relu(image)


@settings(max_examples=EXAMPLES)
@given(unscheduled(), st.integers(0, 99))
def test_chosen_tiles_fit_a_small_memory(kernel, seed):
    """check() runs verify_stage, which compares what was placed with the target's memories."""
    check(kernel, "small", seed)
