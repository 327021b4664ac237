"""Which computations of a function share a loop: rows of a softmax, columns of a sum.

Members of a group run one after the other for one tile of the *outer* loops, which are parallel in
all of them and step over the same elements of every value that passes from one to another. So that
value exists one tile at a time, in cache, and what several members read comes from memory once.

A computation joins the groups it reads from, or shares inputs with, if

* some outer loop is left, and no value would pass out of the group and back into it;
* it pays: a large value passes through cache, or the newcomer is but a few numbers per iteration;
* what one iteration keeps fits the cache.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

Access = tuple[int | None, ...]
Value = Hashable

# Bytes that the values inside a group may take, for one step of its outer loops.
CACHE_BYTES = 512 << 10
# Elements of a row along the memory of a value that are worth fetching alone.
LINE_ELEMENTS = 16
# A value is large that has at least this part of the elements of the largest.
LARGE = 4
MAX_MEMBERS = 32


@dataclass(frozen=True)
class Use:
    """A value, the loop that walks each of its dimensions, its extents, bytes of an element."""

    value: Value
    access: Access
    shape: tuple[int, ...]
    element_bytes: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Computation:
    """Loops over values."""

    extents: tuple[int, ...]
    reductions: frozenset[int]
    reads: tuple[Use, ...]
    writes: tuple[Use, ...]

    @property
    def parallel(self) -> tuple[int, ...]:
        return tuple(i for i in range(len(self.extents)) if i not in self.reductions)

    @property
    def volume(self) -> int:
        return prod(self.extents)


@dataclass(frozen=True)
class LoopGroup:
    """`loops[m]`: the loops of member m that are the outer loops, outermost first."""

    loops: dict[int, tuple[int, ...]]
    extents: tuple[int, ...]

    @property
    def members(self) -> list[int]:
        return sorted(self.loops)

    @property
    def iterations(self) -> int:
        return prod(self.extents)


def find_groups(
    computations: Sequence[Computation | None], before: Sequence[frozenset[int]]
) -> list[LoopGroup]:
    """Groups of all computations, by their last member.

    None stands for an operation that cannot be in a group; `before[i]` holds the positions of
    everything, whatever it is, that operation i depends on, directly or not.
    """
    group_of: dict[int, LoopGroup] = {}
    for position, computation in enumerate(computations):
        if computation is None:
            continue
        outer = computation.parallel
        current = LoopGroup({position: outer}, tuple(computation.extents[i] for i in outer))
        for candidate in _candidates(position, computations, group_of):
            joined = _joined(current, candidate, computations)
            if joined is not None and not _has_cycle(joined, before, group_of):
                current = joined
        group_of.update(dict.fromkeys(current.members, current))
    unique = {id(group): group for group in group_of.values()}
    return sorted(unique.values(), key=lambda group: group.members[-1])


def inner_values(
    group: LoopGroup, computations: Sequence[Computation]
) -> Iterator[tuple[Use, int]]:
    """Values that one member makes and another reads, with the member that makes them."""
    read = {use.value for m in group.members for use in computations[m].reads}
    for member in group.members:
        for use in computations[member].writes:
            if use.value in read:
                yield use, member


def bytes_per_iteration(group: LoopGroup, computations: Sequence[Computation]) -> int:
    """Bytes of the values inside a group for one iteration of its outer loops."""
    total = 0
    for use, member in inner_values(group, computations):
        kept = [e for e, loop in zip(use.shape, use.access) if loop not in group.loops[member]]
        total += prod(kept) * use.element_bytes
    return total


def walks_lines(group: LoopGroup, computations: Sequence[Computation]) -> bool:
    """Whether neighbours in memory belong to different iterations of the outer loops."""
    return any(
        use.access and use.access[-1] in group.loops[m] and use.shape[-1] > 1
        for m in group.members
        for use in (*computations[m].reads, *computations[m].writes)
        if use.elements > group.iterations
    )


def _candidates(
    position: int, computations: Sequence[Computation | None], group_of: dict[int, LoopGroup]
) -> list[LoopGroup]:
    """Groups that make or read what the computation reads, the latest first."""
    read = {use.value for use in computations[position].reads}
    found: dict[int, LoopGroup] = {}
    for earlier in reversed(range(position)):
        if earlier not in group_of:
            continue
        other = computations[earlier]
        if read & {use.value for use in (*other.writes, *other.reads)}:
            found[id(group_of[earlier])] = group_of[earlier]
    return list(found.values())


def _joined(
    current: LoopGroup, other: LoopGroup, computations: Sequence[Computation | None]
) -> LoopGroup | None:
    if len(current.loops) + len(other.loops) > MAX_MEMBERS:
        return None
    pairs = _common_loops(current, other, computations)
    if not pairs:
        return None
    loops = {m: tuple(own[a] for a, _ in pairs) for m, own in current.loops.items()}
    loops |= {m: tuple(own[b] for _, b in pairs) for m, own in other.loops.items()}
    group = LoopGroup(loops, tuple(current.extents[a] for a, _ in pairs))
    if not _pays(current, other, group, computations):
        return None
    lines = LINE_ELEMENTS if walks_lines(group, computations) else 1
    fits = bytes_per_iteration(group, computations) * lines <= CACHE_BYTES
    return group if fits else None


def _edges(
    current: LoopGroup, other: LoopGroup, computations: Sequence[Computation]
) -> tuple[list[tuple[int, int, Use, Use]], list[tuple[int, int, Use, Use]]]:
    """(reader, maker, use, use) of values that pass from `other` to `current`, or the other way
    round; the same for values that both only read."""
    passed, shared = [], []
    for c in current.loops:
        for o in other.loops:
            mine, theirs = computations[c], computations[o]
            passed += _matches(c, o, mine.reads, theirs.writes)
            passed += _matches(c, o, mine.writes, theirs.reads)
            shared += _matches(c, o, mine.reads, theirs.reads)
    return passed, shared


def _matches(c: int, o: int, mine: Sequence[Use], theirs: Sequence[Use]):
    return [(c, o, a, b) for a in mine for b in theirs if a.value == b.value]


def _common_loops(
    current: LoopGroup, other: LoopGroup, computations: Sequence[Computation]
) -> list[tuple[int, int]]:
    """Pairs of outer loops that step over the same elements, in the order of `current`."""
    passed, shared = _edges(current, other, computations)
    pairs: list[tuple[int, int]] | None = None
    for c, o, mine, theirs in passed or shared:
        found = [
            (current.loops[c].index(a), other.loops[o].index(b))
            for a, b in zip(mine.access, theirs.access, strict=True)
            if a in current.loops[c] and b in other.loops[o]
        ]
        pairs = sorted(found) if pairs is None else [p for p in pairs if p in found]
    return [p for p in pairs or [] if current.extents[p[0]] == other.extents[p[1]] > 1]


def _pays(
    current: LoopGroup, other: LoopGroup, group: LoopGroup, computations: Sequence[Computation]
) -> bool:
    largest = max(
        use.elements
        for m in group.members
        for use in (*computations[m].reads, *computations[m].writes)
    )
    passed, shared = _edges(current, other, computations)
    if any(mine.elements * LARGE >= largest for _, _, mine, _ in [*passed, *shared]):
        return True
    few = all(computations[m].volume <= group.iterations for m in current.members)
    return few and bool(passed) and group.iterations == other.iterations


def _has_cycle(
    group: LoopGroup, before: Sequence[frozenset[int]], group_of: Mapping[int, LoopGroup]
) -> bool:
    """Whether something outside needs a member and is needed by another one. Another group needs
    what any of its members needs."""
    members, seen = set(group.members), set()
    pending = [other for m in members for other in before[m] if other not in members]
    while pending:
        outside = pending.pop()
        if outside in seen:
            continue
        together = group_of[outside].members if outside in group_of else [outside]
        seen.update(together)
        needed = frozenset().union(*(before[other] for other in together))
        if needed & members:
            return True
        pending.extend(needed - seen)
    return False
