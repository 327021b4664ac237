"""Permutations of dimensions and groupings of shapes. Pure Python, no IR.

A permutation is read as `linalg.transpose` reads it: dimension i of the result is dimension
`permutation[i]` of the source.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

Permutation = tuple[int, ...]

# Stands for an extent of 0 where extents are multiplied: a prime that no other extent contains.
_ZERO = 2**61 - 1


def compose(first: Sequence[int], then: Sequence[int]) -> Permutation:
    """The permutation that does `first`, and `then` on its result."""
    return tuple(first[i] for i in then)


def inverse(permutation: Sequence[int]) -> Permutation:
    found = [0] * len(permutation)
    for position, source in enumerate(permutation):
        found[source] = position
    return tuple(found)


def is_identity(permutation: Sequence[int]) -> bool:
    return all(source == position for position, source in enumerate(permutation))


def permuted(items: Sequence, permutation: Sequence[int]) -> tuple:
    return tuple(items[source] for source in permutation)


def keeps_order(shape: Sequence[int], permutation: Sequence[int]) -> bool:
    """Whether only dimensions of extent 1 move, so that the elements stay where they are."""
    moved = [source for source in permutation if shape[source] != 1]
    return moved == sorted(moved)


def is_channels_first(permutation: Sequence[int]) -> bool:
    """Whether it takes an image with the channels last to one with the channels first.

    Rank 4 and above: N H W ... to N ... H W, where the dimensions in ... are channels in any order.
    Rank 3: N L C to N C L, or H W C to C H W.
    """
    permutation = tuple(permutation)
    if len(permutation) == 3:
        return permutation in ((0, 2, 1), (2, 0, 1))
    return len(permutation) > 3 and permutation[0] == 0 and permutation[-2:] == (1, 2)


def is_channels_last(permutation: Sequence[int]) -> bool:
    """Whether it takes an image with the channels first, of rank 4 and above, to channels last."""
    rank = len(permutation)
    return rank > 3 and permutation[0] == 0 and tuple(permutation[1:3]) == (rank - 2, rank - 1)


@dataclass(frozen=True)
class Group:
    """Dimensions of a source and of a target shape that hold the same number of elements."""

    source: tuple[int, ...]
    target: tuple[int, ...]


def groups(source: Sequence[int], target: Sequence[int]) -> tuple[Group, ...] | None:
    """The smallest groups of consecutive dimensions with equal element counts, in order.

    None when the shapes hold different counts, or when one of them has rank 0. An extent of 0 only
    corresponds to another 0.
    """
    source, target = ([extent or _ZERO for extent in shape] for shape in (source, target))
    if prod(source) != prod(target) or not source or not target:
        return None
    found, i, j = [], 0, 0
    while i < len(source) and j < len(target):
        first_i, first_j = i, j
        left, right = source[i], target[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * source[i], i + 1
            else:
                right, j = right * target[j], j + 1
        found.append(Group(tuple(range(first_i, i)), tuple(range(first_j, j))))
    last = found[-1]  # what is left over has extent 1
    left, right = range(last.source[0], len(source)), range(last.target[0], len(target))
    return (*found[:-1], Group(tuple(left), tuple(right)))


def coalesce(
    shape: Sequence[int], permutation: Sequence[int]
) -> tuple[tuple[int, ...], Permutation]:
    """The same movement of elements with the fewest dimensions: source shape and permutation.

    Dimensions of extent 1 go, and neighbours that stay neighbours become one: NHWC to NCHW is
    (N, H*W, C) by (0, 2, 1).
    """
    runs: list[list[int]] = []
    previous = None
    wide = [d for d in range(len(shape)) if shape[d] != 1]
    for source in (d for d in permutation if shape[d] != 1):
        if previous is not None and wide.index(source) == wide.index(previous) + 1:
            runs[-1].append(source)
        else:
            runs.append([source])
        previous = source
    in_source_order = sorted(runs)
    extents = tuple(prod(shape[d] for d in run) for run in in_source_order)
    return extents, tuple(in_source_order.index(run) for run in runs)
