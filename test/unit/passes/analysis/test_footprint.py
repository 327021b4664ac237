"""Bytes of a tile from the operands' indexing: halos, alignment, buffer counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_npu.passes.analysis.footprint import Access, Compute, KernelShape, Loop, footprint

ALIGNED = {"sram": 1, "acc": 1}


def conv(strides=(1, 1), dilations=(1, 1)) -> KernelShape:
    """56x56 outputs of 3x3 taps, 64 channels, two blocks of 16: loops y, x, ko, ki, r, s, c."""
    extents = {"y": 56, "x": 56, "ko": 2, "ki": 16, "r": 3, "s": 3, "c": 64}
    forced = {"ki": 16}
    loops = tuple(
        Loop(name, n, reduction=name in "rsc", forced=forced.get(name))
        for name, n in extents.items()
    )
    (sy, sx), (dy, dx) = strides, dilations
    image = (((0, sy), (4, dy)), ((1, sx), (5, dx)), ((6, 1),))
    weights = tuple(((loop, 1),) for loop in (2, 4, 5, 6, 3))
    out = tuple(((loop, 1),) for loop in (0, 1, 2, 3))
    accesses = (
        Access("image", image, 4),
        Access("weights", weights, 4),
        Access("accumulator", out, 4, space="acc", moved=False),
        Access("out", out, 4, written=True),
    )
    computes = (Compute("matrix", tuple(range(7))), Compute("vector", (0, 1, 2, 3), 0))
    return KernelShape(loops, accesses, unit="matrix", rows=(6,), columns=(2, 3), computes=computes)


def test_bytes_of_a_tile():
    found = footprint(conv(), (8, 56, 1, 16, 3, 3, 64), ALIGNED)
    sizes = {buffer.name: buffer.bytes for buffer in found.buffers}
    assert sizes["image"] == 10 * 58 * 64 * 4
    assert sizes["weights"] == 9 * 64 * 16 * 4
    assert sizes["accumulator"] == sizes["out"] == 8 * 56 * 16 * 4
    assert found.bytes("sram") == sizes["image"] + sizes["weights"] + sizes["out"]
    assert found.bytes("acc") == sizes["accumulator"]


@given(*[st.integers(1, 9)] * 3, st.integers(1, 4), st.integers(1, 3))
def test_image_tile_is_the_halo_formula(rows, columns, taps, stride, dilation):
    image = conv((stride, 1), (dilation, 1)).accesses[0]
    have = image.elements((rows, columns, 1, 1, taps, 1, 1))
    assert have == ((rows - 1) * stride + (taps - 1) * dilation + 1) * columns


def test_alignment_and_buffer_counts():
    shape = KernelShape((Loop("i", 10),), (Access("a", (((0, 1),),), 4), Access("b", ((),), 4)))
    found = footprint(shape, (10,), {"sram": 64, "acc": 64}, copies={"a": 2})
    assert [(b.name, b.bytes) for b in found.buffers] == [("a", 128), ("b", 64)]
    assert [b.name for b in found.largest("sram", 1)] == ["a"]
    assert found.largest("acc") == []


@pytest.mark.parametrize(
    "loop, sizes, any_size",
    [
        (Loop("i", 12), (1, 2, 3, 4, 6, 12), False),
        (Loop("i", 24, granule=8), (8, 24), False),
        (Loop("i", 7, granule=8), (7,), False),
        (Loop("i", 7, granule=8), (1, 7), True),
        (Loop("i", 12, forced=1), (1,), True),
    ],
)
def test_tile_sizes(loop, sizes, any_size):
    assert loop.tiles(any_size) == sizes


def test_tile_counts():
    shape = conv()
    assert shape.tile_count((8, 28, 1, 16, 3, 3, 32)) == 7 * 2 * 2 * 2
    assert shape.tile_count((8, 28, 1, 16, 3, 3, 32), shape.parallel) == 7 * 2 * 2
    assert shape.reductions == (4, 5, 6) and shape.points() == 56 * 56 * 32 * 576
