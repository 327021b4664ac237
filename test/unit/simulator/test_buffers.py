"""Which boxes share bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mlir_npu.simulator.buffers import Buffer, Memory, overlap, row_major

SHAPE = (4, 5, 6)


def whole(memory: Memory, base: int = 0, shape=SHAPE, dtype=np.float32) -> Buffer:
    dtype = np.dtype(dtype)
    strides = row_major(shape, dtype.itemsize)
    return Buffer(memory, "sram", dtype, base, shape, strides, base)


def bytes_of(box: Buffer) -> set[int]:
    starts = np.full(box.shape, box.offset)
    for dim, (extent, stride) in enumerate(zip(box.shape, box.strides)):
        form = [1] * len(box.shape)
        form[dim] = extent
        starts = starts + (np.arange(extent) * stride).reshape(form)
    return {int(start) + i for start in starts.ravel() for i in range(box.dtype.itemsize)}


def boxes(buffer: Buffer, sizes) -> list[Buffer]:
    ranges = (range(extent - size + 1) for extent, size in zip(SHAPE, sizes))
    return [buffer.box(offsets, sizes) for offsets in itertools.product(*ranges)]


@pytest.mark.parametrize("sizes", [(2, 2, 3), (1, 2, 3), (2, 1, 6), (4, 2, 1), (1, 1, 2)])
def test_boxes_of_one_buffer_are_told_apart_exactly(sizes):
    buffer = whole(Memory("m", 1000), 40)
    for one, other in itertools.product(boxes(buffer, sizes)[::3], boxes(buffer, sizes)):
        assert overlap(one, other) == bool(bytes_of(one) & bytes_of(other))


def test_boxes_of_other_form_are_never_missed():
    rng = np.random.default_rng(0)
    buffer = whole(Memory("m", 1000))
    for _ in range(400):
        sizes = [[int(rng.integers(1, extent + 1)) for extent in SHAPE] for _ in range(2)]
        one, other = (rng.choice(np.array(boxes(buffer, s), dtype=object)) for s in sizes)
        if bytes_of(one) & bytes_of(other):
            assert overlap(one, other)


def test_interleaved_rows_share_nothing():
    buffer = whole(Memory("m", 1000))
    even, odd = (buffer.box((0, first, 0), (4, 2, 6), (1, 2, 1)) for first in (0, 1))
    assert not overlap(even, odd)
    assert overlap(even, even)


def test_other_buffers_and_other_memories():
    memory = Memory("m", 1000)
    assert overlap(whole(memory), whole(memory, 476))
    assert not overlap(whole(memory), whole(memory, 480))
    assert not overlap(whole(memory), whole(Memory("m", 1000)))
    nothing = whole(memory, 0, (0, 4))
    assert not overlap(whole(memory), nothing)


def test_a_box_outside_of_its_buffer_is_an_error():
    with pytest.raises(ValueError, match=r"\[3, 5\] of dimension 1 is outside of the extent 5"):
        whole(Memory("m", 1000)).box((0, 3, 0), (1, 3, 1))


def test_data_is_a_view_of_the_memory():
    memory = Memory.poisoned("m", 480)
    box = whole(memory).box((1, 2, 0), (1, 2, 6))
    assert np.isnan(box.array()).all()
    box.array()[...] = 7
    assert (whole(memory).array() == 7).sum() == 12
