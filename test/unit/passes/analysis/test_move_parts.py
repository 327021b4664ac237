"""How many moves a tile takes, for all tiles at once, is what split-dma makes of each."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlir_npu.dialect.target import Dma
from mlir_npu.passes.analysis.footprint import Access, KernelShape, Loop
from mlir_npu.passes.analysis.move_parts import FIXED, move_parts
from mlir_npu.passes.analysis.move_shape import (
    dim_to_share,
    dims_to_loop_over,
    effective_dims,
    worth_sharing,
)
from mlir_npu.passes.analysis.tile_grid import all_tiles


def row_major(extents):
    return [prod(extents[dim + 1 :]) for dim in range(len(extents))]


@st.composite
def operands(draw):
    """One loop for each dimension; in dram some are longer, some padded, perhaps in another order."""
    rank = draw(st.integers(1, 5))
    loops = tuple(Loop(f"d{i}", draw(st.sampled_from([1, 2, 3, 4, 6]))) for i in range(rank))
    lows = [draw(st.sampled_from([0, 0, 1])) for _ in loops]
    beyond = [draw(st.sampled_from([0, 0, 1])) for _ in loops]
    if draw(st.booleans()):
        image = tuple((low, max(1, loop.extent - low)) for low, loop in zip(lows, loops))
        extents = tuple(low + data for low, data in image)
    else:
        image, extents = None, tuple(loop.extent + more for loop, more in zip(loops, beyond))
    dims = tuple(((i, 1),) for i in range(rank))
    order = draw(st.none() | st.permutations(range(rank)).map(tuple))
    return KernelShape(loops, (Access("x", dims, 4, image=image, extents=extents, order=order),))


def parts_of(shape: KernelShape, tile, dma: Dma) -> int:
    """What split-dma does, by the same functions."""
    (access,) = shape.accesses
    image = access.image or tuple((0, extent) for extent in access.extents)
    padded = [dim for dim, part in enumerate(image) if part != (0, access.extents[dim])]
    moved: list[int | None] = list(tile)
    for dim in padded:
        low, data = image[dim]
        moved[dim] = min(tile[dim] - low, data) if tile[dim] == shape.extents[dim] else None
    order = access.order or range(len(image))
    in_dram = dict(zip(order, row_major([image[dim][1] for dim in order])))
    dims = effective_dims(moved, [in_dram[dim] for dim in range(len(image))], row_major(tile))
    looped = dims_to_loop_over(dims, dma.max_rank, padded)
    if looped is None:
        return FIXED
    if looped:
        return prod(tile[dim] for dim in looped)
    shared = dim_to_share(dims, tile, dma.channels, padded)
    return shared[1] if shared and worth_sharing(4 * prod(tile), dma) else 1


@given(operands(), st.integers(1, 4), st.integers(1, 4))
def test_moves_of_all_tiles_at_once(shape, max_rank, channels):
    dma = Dma(channels, setup_cycles=1, bytes_per_cycle=8, max_rank=max_rank)
    tiles = all_tiles(shape)
    found = move_parts(shape, shape.accesses[0], tiles, dma)
    assert found.tolist() == [parts_of(shape, [int(n) for n in tile], dma) for tile in tiles]


def test_a_box_of_columns_and_channels_takes_one_move_per_row():
    loops = tuple(Loop(name, n) for name, n in {"y": 8, "x": 8, "c": 16}.items())
    access = Access("image", tuple(((i, 1),) for i in range(3)), 4, extents=(8, 8, 16))
    dma = Dma(channels=1, setup_cycles=100, bytes_per_cycle=32, max_rank=2)
    tiles = np.array([[8, 8, 16], [4, 4, 16], [4, 4, 8], [2, 8, 8], [8, 1, 8]])
    found = move_parts(KernelShape(loops, (access,)), access, tiles, dma)
    assert found.tolist() == [1, 1, 4, 1, 1]
