"""How a tensor crosses the boundary of compiled code: shape, strides, and the order of its memory.

Compiled code sees *physical* tensors: row-major, in memory order. A channels_last image of shape
(N, C, H, W) is the physical tensor (N, H, W, C); its order is (0, 2, 3, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch


def is_dense_in_order(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    """True if the dims, walked in `order` (slowest first), are packed. Strides of size-1 dims mean
    nothing."""
    expected = 1
    for dim in reversed(order):
        if shape[dim] == 1:
            continue
        if strides[dim] != expected:
            return False
        expected *= shape[dim]
    return True


def _likely_orders(strides: Sequence[int]) -> list[tuple[int, ...]]:
    """Row-major, channels_last, dims by decreasing stride."""
    rank = len(strides)
    orders = [tuple(range(rank))]
    if rank >= 3:
        orders.append((0, *range(2, rank), 1))
    orders.append(tuple(sorted(range(rank), key=lambda dim: (-strides[dim], dim))))
    return orders


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Order in which the dims lie in memory, slowest first; None if the tensor has gaps or
    overlaps.

    Where size-1 dims leave a choice, row-major wins over channels_last, which wins over every other
    order.
    """
    return next((o for o in _likely_orders(strides) if is_dense_in_order(shape, strides, o)), None)


def nearest_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Order for the packed copy of a tensor that has gaps or expanded dims (stride 0, which say
    nothing)."""

    def decreasing(order: tuple[int, ...]) -> bool:
        steps = [strides[dim] for dim in order if shape[dim] > 1 and strides[dim]]
        return steps == sorted(steps, reverse=True)

    return next(order for order in _likely_orders(strides) if decreasing(order))


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides (in elements) of a packed tensor whose dims lie in `order`."""
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


@dataclass(frozen=True)
class TensorSpec:
    """A tensor at the boundary. `strides` are those the caller sees, `order` the memory order of
    compiled code."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    order: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorSpec:
        """The spec of a (fake or real) tensor."""
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        order = memory_order(shape, strides) or nearest_order(shape, strides)
        return cls(shape, strides, tensor.dtype, order)

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """Strides of the packed tensor that compiled code reads or writes."""
        return dense_strides(self.shape, self.order)

    @cached_property
    def is_dense(self) -> bool:
        return is_dense_in_order(self.shape, self.strides, self.order)

    @property
    def is_row_major(self) -> bool:
        return self.order == tuple(range(len(self.shape)))

    @property
    def physical_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[dim] for dim in self.order)

    @property
    def inverse_order(self) -> tuple[int, ...]:
        """Permutation that takes the physical tensor back to the logical one."""
        return tuple(sorted(range(len(self.order)), key=self.order.__getitem__))

    def accepts(self, tensor: torch.Tensor) -> bool:
        """True if compiled code can read the tensor where it is."""
        return is_dense_in_order(self.shape, tensor.stride(), self.order) and not tensor.is_neg()

    def conform(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor itself if compiled code can read it in place, else a packed copy."""
        if self.accepts(tensor):
            return tensor
        packed = torch.empty_strided(self.shape, self.dense, dtype=self.dtype, device="cpu")
        return packed.copy_(tensor)

    def restore(self, packed: torch.Tensor) -> torch.Tensor:
        """A tensor with the caller's strides (gaps, expanded dims) from the packed one."""
        if self.is_dense:
            return packed
        result = torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device="cpu")
        target, source = result, packed
        for dim, (size, stride) in enumerate(zip(self.shape, self.strides)):
            if stride == 0 and size > 1:  # an expanded dim has one element in memory
                target, source = target.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
        target.copy_(source)
        return result
