"""Loop nests over strided buffers: one dimension is an extent and one element stride per operand.

Reading every operand through a linear function of the loop counters turns questions of layout into
arithmetic on strides: two neighbouring loops are one longer loop when the outer stride of every
operand is the inner stride times the inner extent. That flattens the pixels of a 1x1 convolution,
the (s, c) taps of a convolution over a dense image row, and any elementwise op on dense tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dim:
    """A loop of `extent` iterations, or `extent * symbol` when the size is known at run time only.

    `strides[i]` is how many elements operand i moves per iteration.
    """

    extent: int
    strides: tuple[int, ...]
    symbol: Any = None

    @property
    def is_unit(self) -> bool:
        return self.extent == 1 and self.symbol is None


def unit_dim(operands: int) -> Dim:
    """A loop of one iteration over `operands` operands."""
    return Dim(1, (0,) * operands)


def can_merge(outer: Dim, inner: Dim) -> bool:
    """Whether `outer` over `inner` is one loop of the product of their extents."""
    if inner.symbol is not None:
        return False
    return all(o == i * inner.extent for o, i in zip(outer.strides, inner.strides, strict=True))


def merge(dims: Iterable[Dim]) -> list[Dim]:
    """Drop loops of one iteration; join neighbours, outermost first, where all operands allow."""
    merged: list[Dim] = []
    for dim in dims:
        if dim.is_unit:
            continue
        if merged and can_merge(merged[-1], dim):
            outer = merged.pop()
            dim = Dim(outer.extent * dim.extent, dim.strides, outer.symbol)
        merged.append(dim)
    return merged


def order_by_stride(dims: Sequence[Dim], operand: int) -> list[Dim]:
    """Sort loops so that `operand` is walked in memory order, outermost first."""
    return sorted(dims, key=lambda dim: -abs(dim.strides[operand]))
