"""How many moves the move of a tile becomes, for every tile. NumPy, no IR.

The same rules as `move_shape`, for all tiles of an operand at once, and what `split-dma` does by
them: a move of too many dimensions becomes a loop over moves, a long one is shared by channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlir_npu.dialect.target import Dma
from mlir_npu.passes.analysis.footprint import Access, KernelShape
from mlir_npu.passes.analysis.move_shape import worth_sharing
from mlir_npu.passes.analysis.permutation import inverse, permuted
from mlir_npu.passes.analysis.tile_grid import dim_extents, elements

FIXED = 1 << 20  # so many moves stand for a dimension that cannot be split: never the cheapest
NONE = 1 << 40


@dataclass(frozen=True)
class _Dim:
    """A dimension of the box that moves: extent, strides in dram and on chip, padded or not.

    unknown: tiles whose extent differs from tile to tile.
    """

    extent: np.ndarray
    unknown: np.ndarray
    dram_stride: int
    chip_stride: np.ndarray
    padded: bool


def move_parts(shape: KernelShape, access: Access, tiles: np.ndarray, dma: Dma) -> np.ndarray:
    """How many moves bring a tile of an operand."""
    merged = _Merged(len(tiles), dma.channels)
    for dim in reversed(_dims(shape, access, tiles)):
        merged.add(dim)
    merged.close(np.ones(len(tiles), dtype=bool))
    extents = np.sort(np.stack(merged.extents), axis=0)
    rank = np.sum(extents < NONE, axis=0)
    parts = np.ones(len(tiles), dtype=np.int64)
    for number, extent in enumerate(extents):
        parts = np.minimum(parts * np.where(number < rank - dma.max_rank, extent, 1), FIXED)
    size = elements(access, tiles) * access.element_bytes
    shared = (rank <= dma.max_rank) & worth_sharing(size, dma)
    return np.where(shared, merged.shares, parts)


class _Merged:
    """Dimensions that are left after merging, added from the innermost on."""

    def __init__(self, tiles: int, channels: int):
        self.extents: list[np.ndarray] = []
        self.shares = np.ones(tiles, dtype=np.int64)  # parts that channels can share
        self._channels = channels
        self._open = np.zeros(tiles, dtype=bool)
        self._whole = np.ones(tiles, dtype=np.int64)  # of the open one: extent and strides
        self._strides = [np.zeros(tiles, dtype=np.int64) for _ in range(2)]
        self._outermost = np.ones(tiles, dtype=np.int64)
        self._unknown = np.zeros(tiles, dtype=bool)
        self._fixed = np.zeros(tiles, dtype=bool)

    def add(self, dim: _Dim) -> None:
        counts = (dim.extent != 1) | dim.unknown
        strides = (dim.dram_stride, dim.chip_stride)
        joins = self._open & counts & ~self._unknown
        for stride, inner in zip(strides, self._strides):
            joins &= stride == self._whole * inner
        starts = counts & ~joins
        self.close(starts)
        self._open |= starts
        grown = self._whole * np.where(joins, dim.extent, 1)
        self._whole = np.where(starts, dim.extent, grown)
        self._strides = [np.where(starts, s, old) for s, old in zip(strides, self._strides)]
        self._outermost = np.where(counts, dim.extent, self._outermost)
        self._unknown = np.where(starts, dim.unknown, self._unknown | (joins & dim.unknown))
        self._fixed = np.where(starts, dim.padded, self._fixed | (joins & dim.padded))

    def close(self, which: np.ndarray) -> None:
        """What is open has no outer neighbour to merge with."""
        closed = which & self._open
        fixed = self._fixed | self._unknown
        extent = np.where(fixed, FIXED, self._whole)
        self.extents.append(np.where(closed, extent, NONE))
        shares = np.gcd(self._outermost, self._channels)
        self.shares = np.where(closed & ~fixed, np.maximum(self.shares, shares), self.shares)


def _dims(shape: KernelShape, access: Access, tiles: np.ndarray) -> list[_Dim]:
    """The dimensions of an operand, outermost first."""
    trips = np.array(shape.extents) // tiles
    held = dim_extents(access, tiles)
    reach = [int(extent[0]) for extent in dim_extents(access, np.array([shape.extents]))]
    extents = access.extents or tuple(reach)
    image = access.image or tuple((0, extent) for extent in extents)
    dram_strides = _dram_strides([extent for _, extent in image], access.order)
    chip_strides = _strides(held)
    found = []
    for dim, (low, data) in enumerate(image):
        padded = (low, data) != (0, extents[dim])
        split = np.any(trips[:, [loop for loop, _ in access.dims[dim]]] > 1, axis=1)
        moved = np.minimum(held[dim] - low, data) if padded else held[dim]
        found.append(_Dim(moved, split & padded, dram_strides[dim], chip_strides[dim], padded))
    return found


def _dram_strides(extents: Sequence[int], order: Sequence[int] | None) -> Sequence[int]:
    order = order or range(len(extents))
    return permuted(_strides(permuted(extents, order)), inverse(order))


def _strides(extents: Sequence) -> list:
    strides = [extents[-1] * 0 + 1] if extents else []
    for extent in reversed(extents[1:]):
        strides.insert(0, strides[0] * extent)
    return strides
