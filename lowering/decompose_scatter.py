"""Gradients of elements at positions that are known at compile time: what was taken is added up
where it came from."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.decompose_gather import (
    Piece,
    index_positions,
    padded_positions,
    pieces,
    reflected,
    replicated,
)
from mlir_npu.lowering.decompose_shape import slice_backward
from mlir_npu.lowering.decomposition_table import aten, decomposes


def put(x: Tensor, dim: int, positions: Sequence[int], extent: int) -> Tensor:
    """Zeros of `extent` along `dim`, to which the elements of `x` are added at `positions`."""
    total, first = None, 0
    for piece in pieces(positions):
        size = piece.count * piece.times
        part = x if size == x.shape[dim] else aten.slice.Tensor(x, dim, first, first + size)
        placed = _placed(part, dim, piece, extent)
        total = placed if total is None else total + placed
        first += size
    return total


def _placed(x: Tensor, dim: int, piece: Piece, extent: int) -> Tensor:
    shape = list(x.shape)
    if piece.times > 1:
        split = [*shape[:dim], piece.count, piece.times, *shape[dim + 1 :]]
        x = aten.sum.dim_IntList(aten.reshape(x, split), [dim + 1])
    shape[dim] = extent
    end = piece.start + (piece.count - 1) * piece.step + 1
    if piece.count == extent:
        return x
    return slice_backward(x, shape, dim, piece.start, end, piece.step)


@decomposes(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Sums at a grid of constant positions (a support rule lets no other through), one dimension
    after the other."""
    for dim, positions in reversed(list(enumerate(indices))):
        if positions is not None:
            values = put(values, dim, index_positions(positions, x.shape[dim]), x.shape[dim])
    return values if _holds_zeros(x) else x + values


def _holds_zeros(x: Tensor) -> bool:
    """Whether it is a constant of zeros; a traced tensor is not."""
    with _disable_current_modes():
        return not isinstance(x, FakeTensor) and not x.any()


@decomposes(
    aten.reflection_pad1d_backward.default,
    aten.reflection_pad2d_backward.default,
    aten.reflection_pad3d_backward.default,
)
def reflection_pad_backward(grad: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    for dim, positions in padded_positions(x.shape, padding, reflected):
        grad = put(grad, dim, positions, x.shape[dim])
    return grad


@decomposes(
    aten.replication_pad1d_backward.default,
    aten.replication_pad2d_backward.default,
    aten.replication_pad3d_backward.default,
)
def replication_pad_backward(grad: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    for dim, positions in padded_positions(x.shape, padding, replicated):
        grad = put(grad, dim, positions, x.shape[dim])
    return grad
