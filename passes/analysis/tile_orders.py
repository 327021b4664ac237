"""Orders of tile loops that can differ in cost, for groups of tiles that split the same loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlir_npu.passes.analysis.footprint import KernelShape
from mlir_npu.passes.analysis.tile_grid import distinct_rows


def groups(shape: KernelShape, trips: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """(parallel loops that run more than once, rows of their tiles): few and outer loops first."""
    split = trips[:, list(shape.parallel)] > 1
    masks, members = distinct_rows(split)
    outer_first = sorted(range(len(masks)), key=lambda n: (masks[n].sum(), *~masks[n]))
    for number in outer_first:
        loops = tuple(i for i, is_split in zip(shape.parallel, masks[number]) if is_split)
        yield loops, np.flatnonzero(members == number)


def orders(shape: KernelShape, split: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All parallel loops, outermost first: the split ones in every order, the others behind them.

    Neighbours that index the same operands may be swapped at no cost, so they keep their order.
    """
    rest = tuple(loop for loop in shape.parallel if loop not in split)
    for chosen in _arrangements(shape, (), tuple(split)):
        yield chosen + rest


def _arrangements(shape: KernelShape, chosen: tuple[int, ...], left: tuple[int, ...]):
    if not left:
        yield chosen
    for loop in left:
        if chosen and loop < chosen[-1] and _operands(shape, loop) == _operands(shape, chosen[-1]):
            continue
        others = tuple(other for other in left if other != loop)
        yield from _arrangements(shape, (*chosen, loop), others)


def _operands(shape: KernelShape, loop: int) -> tuple[bool, ...]:
    return tuple(access.depends_on(loop) for access in shape.accesses)
