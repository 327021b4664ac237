"""Reading and writing at computed positions, in calls that become machine code.

What is read is taken from a list of rows, at positions that are made valid first. What is written
is found by comparing every place with the positions, so that none of them is used as an address:

    index_put(x, [i], y, accumulate)  ->  for each place: x + the sum of y where i is that place

A position that is none counts for nothing (0 is read there), where eager raises. Comparing costs as
many operations as there are places times positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

aten = torch.ops.aten


def rows(x: Tensor, positions: Tensor) -> Tensor:
    """x[positions] along the first dimension, for one dimension of positions; 0 where there is no
    such row."""
    count = x.shape[0]
    positions = positions.to(torch.int64)
    valid = (positions >= 0) & (positions < count)
    found = aten.index_select.default(x, 0, positions.clamp(0, count - 1))
    valid = valid.reshape(-1, *[1] * (x.dim() - 1))
    return torch.where(valid, found, torch.zeros_like(found))


def put_rows(x: Tensor, positions: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    """x with these rows (one dimension of positions) written, or added to."""
    places = torch.arange(x.shape[0]).reshape(1, -1, *[1] * (x.dim() - 1))
    chosen = positions.reshape(-1, *[1] * x.dim()) == places
    values = values.unsqueeze(1)
    if x.dtype is torch.bool:
        written = (chosen & values).any(0)
    else:
        written = torch.where(chosen, values, torch.zeros_like(values)).sum(0, dtype=x.dtype)
    if accumulate:
        return x + written
    return torch.where(chosen.any(0), written, x)


def embedding(
    weight: Tensor, indices: Tensor, padding: int = -1, scale: bool = False, sparse: bool = False
) -> Tensor:
    return rows(weight, indices.reshape(-1)).reshape(*indices.shape, *weight.shape[1:])


def embedding_dense_backward(
    grad: Tensor, indices: Tensor, count: int, padding: int, scale: bool
) -> Tensor:
    if scale:
        return NotImplemented
    indices = indices.reshape(-1)
    if padding >= 0:
        indices = torch.where(indices == padding, -1, indices)
    width = grad.shape[-1]
    nothing = torch.zeros([count, width], dtype=grad.dtype)
    return put_rows(nothing, indices, grad.reshape(-1, width), accumulate=True)


def index_select(x: Tensor, dim: int, positions: Tensor) -> Tensor:
    if not x.dim():
        return NotImplemented
    return rows(x.movedim(dim, 0), positions.reshape(-1)).movedim(0, dim)


def gather(x: Tensor, dim: int, index: Tensor, sparse: bool = False) -> Tensor:
    if not x.dim() or not index.dim():
        return NotImplemented
    flat = rows(x.reshape(-1), _linear(x.shape, dim % x.dim(), index).reshape(-1))
    return flat.reshape(index.shape)


def scatter(x: Tensor, dim: int, index: Tensor, values: Tensor) -> Tensor:
    return _scattered(x, dim, index, values, accumulate=False)


def scatter_value(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    values = torch.full(index.shape, value, dtype=x.dtype)
    return _scattered(x, dim, index, values, accumulate=False)


def scatter_add(x: Tensor, dim: int, index: Tensor, values: Tensor) -> Tensor:
    return _scattered(x, dim, index, values, accumulate=True)


def _scattered(x: Tensor, dim: int, index: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    """Compared along the dimension, where the others agree."""
    if not x.dim():
        return NotImplemented
    dim = dim % x.dim()
    others = [d for d in range(x.dim()) if d != dim]
    if any(index.shape[d] != x.shape[d] for d in others):
        return NotImplemented
    for d, size in enumerate(index.shape):
        values = aten.slice.Tensor(values, d, 0, size)
    order = [dim, *others]
    written = _put_columns(
        x.permute(order), index.permute(order), values.permute(order), accumulate
    )
    back = [order.index(d) for d in range(x.dim())]
    return written.permute(back)


def _put_columns(x: Tensor, index: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    """As `put_rows`, where every column has positions of its own."""
    places = torch.arange(x.shape[0]).reshape(1, -1, *[1] * (x.dim() - 1))
    chosen, values = index.unsqueeze(1) == places, values.unsqueeze(1)
    if x.dtype is torch.bool:
        return NotImplemented
    written = torch.where(chosen, values, torch.zeros_like(values)).sum(0, dtype=x.dtype)
    return x + written if accumulate else torch.where(chosen.any(0), written, x)


def index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if (found := _first_dims(x, indices)) is None:
        return NotImplemented
    positions, dims, at = found
    shape = positions.shape
    rest = [d for d in range(x.dim()) if d not in dims]
    merged = x.permute(*dims, *rest).reshape(-1, *(x.shape[d] for d in rest))
    taken = rows(merged, positions.reshape(-1)).reshape(*shape, *merged.shape[1:])
    # the dimensions of positions go where the first indexed one was
    order = list(range(taken.dim()))
    before = order[len(shape) : len(shape) + at]
    return taken.permute(*before, *order[: len(shape)], *order[len(shape) + at :])


def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    if (found := _first_dims(x, indices)) is None or found[2]:
        return NotImplemented
    positions, dims, _ = found
    rest = [x.shape[d] for d in range(len(dims), x.dim())]
    values = values.expand(*positions.shape, *rest).reshape(-1, *rest)
    merged = x.reshape(-1, *rest)
    return put_rows(merged, positions.reshape(-1), values, accumulate).reshape(x.shape)


def _first_dims(
    x: Tensor, indices: Sequence[Tensor | None]
) -> tuple[Tensor, list[int], int] | None:
    """Positions in the indexed dimensions taken together, these dimensions, and where the first of
    them is. None for masks, and for dimensions that do not follow each other."""
    dims = [d for d, one in enumerate(indices) if one is not None]
    given = [one for one in indices if one is not None]
    if not dims or dims != list(range(dims[0], dims[-1] + 1)):
        return None
    if any(one.dtype not in (torch.int32, torch.int64) for one in given):
        return None
    total = outside = None
    for dim, one in zip(dims, torch.broadcast_tensors(*given)):
        size = x.shape[dim]
        one = one.to(torch.int64)
        one = torch.where(one < 0, one + size, one)
        bad = (one < 0) | (one >= size)
        total = one if total is None else total * size + one
        outside = bad if outside is None else outside | bad
    return torch.where(outside, -1, total), dims, dims[0]


def _linear(shape: Sequence[int], dim: int, index: Tensor) -> Tensor:
    """Where gather reads, counted through all elements; -1 where it must not."""
    position = torch.where((index < 0) | (index >= shape[dim]), -math.prod(shape), index)
    position = position * math.prod(shape[dim + 1 :])
    for d in range(index.dim()):
        if d != dim:
            steps = torch.arange(index.shape[d]) * math.prod(shape[d + 1 :])
            position = position + steps.reshape(-1, *[1] * (index.dim() - 1 - d))
    return position


INDEXING: dict[torch._ops.OpOverload, Callable] = {
    aten.embedding.default: embedding,
    aten.embedding_dense_backward.default: embedding_dense_backward,
    aten.index_select.default: index_select,
    aten.gather.default: gather,
    aten.scatter.src: scatter,
    aten.scatter.value: scatter_value,
    aten.scatter_add.default: scatter_add,
    aten.index.Tensor: index,
    aten._unsafe_index.Tensor: index,
    aten.index_put.default: index_put,
    aten._unsafe_index_put.default: index_put,
}
