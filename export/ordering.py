"""Maxima with their places, sorting and running sums, in calls that become machine code.

Elements are ordered by counting, for each, those that come before it: as many comparisons as there
are pairs. NaN counts as the largest, as in eager. Of equal elements the first one comes first.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten


def _place(x: Tensor, best: Tensor, dim: int) -> Tensor:
    """Of the first element that is the best one, which is there along the dimension."""
    size = x.shape[dim]
    there = (x == best) | ((x != x) & (best != best)) if x.is_floating_point() else x == best
    places = torch.arange(size).reshape(-1, *[1] * (x.dim() - 1 - dim))
    return torch.where(there, places, size - 1).amin(dim, keepdim=True)


def _best(reduce: Callable, x: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    if not x.dim():
        return NotImplemented
    dim = dim % x.dim()
    best = reduce(x, [dim], True)
    place = _place(x, best, dim)
    return (best, place) if keepdim else (best.squeeze(dim), place.squeeze(dim))


def max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _best(aten.amax.default, x, dim, keepdim)


def min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _best(aten.amin.default, x, dim, keepdim)


def _argument(reduce: Callable, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if dim is None:
        place = _best(reduce, x.reshape(-1), 0, False)[1]
        return place.reshape([1] * x.dim()) if keepdim else place
    found = _best(reduce, x, dim, keepdim)
    return found if found is NotImplemented else found[1]


def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _argument(aten.amax.default, x, dim, keepdim)


def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _argument(aten.amin.default, x, dim, keepdim)


def max_all(x: Tensor) -> Tensor:
    return aten.amax.default(x, list(range(x.dim())))


def min_all(x: Tensor) -> Tensor:
    return aten.amin.default(x, list(range(x.dim())))


def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, in_order: bool = True
) -> tuple[Tensor, Tensor]:
    return _ordered(x, k, dim, largest)


def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return _ordered(x, None, dim, descending)


def sort_stable(
    x: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    return _ordered(x, None, dim, descending)


def _ordered(x: Tensor, count: int | None, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    if not x.dim() or x.dtype is torch.bool:
        return NotImplemented
    dim = dim % x.dim()
    size = x.shape[dim]
    count = size if count is None else count
    last = x.movedim(dim, -1)
    rank = _rank(last, descending).unsqueeze(-2)  # of every element
    chosen = rank == torch.arange(count).reshape(-1, 1)
    places = torch.where(chosen, torch.arange(size), 0).sum(-1)
    values = torch.where(chosen, last.unsqueeze(-2), torch.zeros_like(last).unsqueeze(-2)).sum(
        -1, dtype=x.dtype
    )
    return values.movedim(-1, dim), places.movedim(-1, dim)


def _rank(x: Tensor, descending: bool) -> Tensor:
    """How many elements come before each, along the last dimension."""
    mine, other = x.unsqueeze(-1), x.unsqueeze(-2)
    larger, smaller = other > mine, other < mine
    if x.is_floating_point():
        other_nan, mine_nan = other != other, mine != mine
        larger = larger | (other_nan & (mine == mine))
        smaller = smaller | ((other == other) & mine_nan)
    before = larger if descending else smaller
    equal = torch.logical_not(larger | smaller)
    places = torch.arange(x.shape[-1])
    earlier = places.reshape(1, -1) < places.reshape(-1, 1)
    return torch.where(before | (equal & earlier), 1, 0).sum(-1)


def cumsum(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """In steps of 1, 2, 4, ...: every element adds the one that far before it."""
    wanted = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    x = x.to(wanted)
    if not x.dim():
        return x.clone()
    dim = dim % x.dim()
    size, step = x.shape[dim], 1
    while step < size:
        around = [0, 0] * (x.dim() - 1 - dim) + [step, 0]
        x = x + aten.constant_pad_nd.default(aten.slice.Tensor(x, dim, 0, size - step), around)
        step *= 2
    return x


ORDERING: dict[torch._ops.OpOverload, Callable] = {
    aten.max.dim: max_dim,
    aten.min.dim: min_dim,
    aten.max.default: max_all,
    aten.min.default: min_all,
    aten.argmax.default: argmax,
    aten.argmin.default: argmin,
    aten.topk.default: topk,
    aten.sort.default: sort,
    aten.sort.stable: sort_stable,
    aten.cumsum.default: cumsum,
}
