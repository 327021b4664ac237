"""How many dimensions a move has for a DMA engine. Pure Python, no IR.

An engine walks the source and the target with one counter per dimension. Dimensions of extent 1
need none, and two neighbours need one if both sides are contiguous in them, so that the rank of the
engine limits fewer moves than their number of dimensions suggests. A move that has too many becomes
several, and so does a long one if there are channels to share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from mlir_npu.dialect.target import Dma
from mlir_npu.passes.analysis.permutation import permuted


@dataclass(frozen=True)
class Dim:
    """Merged neighbours `dims` of the target, and the strides of the innermost on both sides.

    An extent or stride that is only known when the move is made is None.
    """

    extent: int | None
    source_stride: int | None
    target_stride: int | None
    dims: tuple[int, ...]


def effective_dims(
    shape: Sequence[int | None],
    source_strides: Sequence[int | None],
    target_strides: Sequence[int | None],
) -> tuple[Dim, ...]:
    """The dimensions of a move, outermost first, that are left after merging.

    `shape` is that of the box that moves; all arguments are in the order of the target.
    """
    merged: list[Dim] = []
    for dim, (extent, read, written) in enumerate(zip(shape, source_strides, target_strides)):
        if extent == 1:
            continue
        own = Dim(extent, read, written, (dim,))
        if merged and _contiguous(merged[-1], own):
            outer = merged.pop()
            whole = None if outer.extent is None else outer.extent * extent
            own = Dim(whole, read, written, (*outer.dims, dim))
        merged.append(own)
    return tuple(merged)


def _contiguous(outer: Dim, inner: Dim) -> bool:
    """Whether a step of `outer` is as long as all of `inner`, in the source and in the target."""
    known = (outer.source_stride, outer.target_stride, *_of(inner))
    if None in known:
        return False
    steps = (outer.source_stride, outer.target_stride)
    return steps == (inner.extent * inner.source_stride, inner.extent * inner.target_stride)


def _of(dim: Dim) -> tuple[int | None, ...]:
    return dim.extent, dim.source_stride, dim.target_stride


def move_dims(
    shape: Sequence[int | None],
    source_strides: Sequence[int | None],
    target_strides: Sequence[int | None],
    permutation: Sequence[int],
) -> tuple[Dim, ...]:
    """`effective_dims` of a move whose target dimension i is source dimension permutation[i].

    `shape` and `source_strides` are in the order of the source.
    """
    in_target_order = [permuted(items, permutation) for items in (shape, source_strides)]
    return effective_dims(*in_target_order, target_strides)


def dims_to_loop_over(
    dims: Sequence[Dim], max_rank: int, fixed: Sequence[int] = ()
) -> tuple[int, ...] | None:
    """Dimensions of the target to loop over, outermost first, so that moves of `max_rank` remain.

    The dimensions with the fewest elements, outermost if equal, are taken: each of their elements
    is a move. Those in `fixed` or of unknown extent stay in the move; None if too few are left.
    """
    free = [d for d in dims if d.extent is not None and not set(d.dims) & set(fixed)]
    needed = max(0, len(dims) - max_rank)
    if len(free) < needed:
        return None
    taken = sorted(free, key=lambda d: d.extent)[:needed]
    return tuple(sorted(dim for merged in taken for dim in merged.dims))


def dim_to_share(
    dims: Sequence[Dim], extents: Sequence[int], channels: int, fixed: Sequence[int] = ()
) -> tuple[int, int] | None:
    """The dimension of the target to cut, so that channels share a move, and the number of parts.

    `extents` are those of the target. Parts are equal and need no more counters than the whole, so
    only the outermost of merged dimensions is cut. None if there is only one part.
    """
    free = [d.dims[0] for d in dims if d.extent is not None and not set(d.dims) & set(fixed)]
    parts, dim = max(((gcd(extents[dim], channels), -dim) for dim in free), default=(1, 0))
    return (-dim, parts) if parts > 1 else None


def worth_sharing(size: int, dma: Dma):
    """Whether a move of `size` bytes is long enough for a setup of every channel."""
    return size >= dma.channels * dma.setup_cycles * dma.bytes_per_cycle
