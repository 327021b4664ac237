"""What a kernel touches, and how many bytes a tile of it occupies on chip.

Pure Python, no IR. A `KernelShape` lists the loops of a kernel and one `Access` per operand. The
extent of an operand along one of its dimensions is a linear form of the loops, so a tile of sizes
t needs `1 + sum(coefficient * (t - 1))` elements there: for a convolution input this is the halo
formula `(out - 1) * stride + (k - 1) * dilation + 1`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod


@dataclass(frozen=True)
class Loop:
    """One loop: its extent and how it may be tiled.

    `granule`: tiles are divisors of the extent, if possible multiples of this. `forced`: the only
    allowed tile, or None.
    """

    name: str
    extent: int
    reduction: bool = False
    granule: int = 1
    forced: int | None = None

    def tiles(self, any_size: bool = False) -> tuple[int, ...]:
        """Allowed tile sizes, ascending; `any_size` admits those that break the granule."""
        if self.forced is not None:
            return (self.forced,)
        divisors = (d for d in range(1, self.extent + 1) if self.extent % d == 0)
        granule = 1 if any_size else self.granule
        return tuple(d for d in divisors if d % granule == 0 or d == self.extent)


@dataclass(frozen=True)
class Access:
    """An operand: per dimension the pairs (loop, coefficient) that index it, and where it lives.

    `image`, if it is read through a pad: per dimension, how many padded elements come before its
    data, and the extent of the data. `moved`: it is in dram too; what stays on chip is never moved.
    `extents`: of the operand, with its padding; None if all of it is indexed. `order`: dimension
    order[i] of the operand is the i-th in dram, None if all are in order.
    """

    name: str
    dims: tuple[tuple[tuple[int, int], ...], ...]
    element_bytes: int
    space: str = "sram"
    written: bool = False
    image: tuple[tuple[int, int], ...] | None = None
    moved: bool = True
    extents: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None

    @property
    def padded(self) -> bool:
        """Whether its tiles are written by padding moves."""
        return self.image is not None

    def elements(self, tile: Sequence[int]) -> int:
        return prod(
            1 + sum(coefficient * (tile[loop] - 1) for loop, coefficient in dim)
            for dim in self.dims
        )

    def bytes(self, tile: Sequence[int]) -> int:
        return self.elements(tile) * self.element_bytes

    def depends_on(self, loop: int) -> bool:
        return any(loop == used for dim in self.dims for used, _ in dim)


@dataclass(frozen=True)
class Compute:
    """One op on tiles: the kernel's loops that it runs over, and scalar operations per point.

    `unit`: "matrix"; "vector", which takes a cycle per operation; "window", a pool or depthwise
    convolution on the vector unit, which takes one per tap.
    """

    unit: str
    loops: tuple[int, ...]
    operations: int = 1


@dataclass(frozen=True)
class Transforms:
    """What a fast algorithm does beyond its products.

    products: share of the plain multiply-adds that it needs. computes: the transforms of a tile.
    scratch: what they leave on chip between them.
    """

    products: Fraction
    computes: tuple[Compute, ...]
    scratch: tuple[Access, ...]


@dataclass(frozen=True)
class KernelShape:
    """Loops and operands of one kernel.

    `unit`: "matrix" when its root contracts channels, else "vector". `rows` and `columns` name the
    loops that the matrix unit takes as its input and output channels. `operations` counts the
    scalar operations of the bodies per point of all loops. `computes`: what runs on a tile, the
    root first. `factor_type`: element type of what the matrix unit multiplies. `transforms`: of an
    algorithm with fewer multiplications.
    """

    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    unit: str = "vector"
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    operations: int = 1
    computes: tuple[Compute, ...] = ()
    factor_type: str = "f32"
    transforms: Transforms | None = None

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(loop.extent for loop in self.loops)

    @property
    def parallel(self) -> tuple[int, ...]:
        return tuple(i for i, loop in enumerate(self.loops) if not loop.reduction)

    @property
    def reductions(self) -> tuple[int, ...]:
        return tuple(i for i, loop in enumerate(self.loops) if loop.reduction)

    def points(self) -> int:
        return prod(self.extents)

    def tile_count(self, tile: Sequence[int], loops: Sequence[int] | None = None) -> int:
        chosen = range(len(self.loops)) if loops is None else loops
        return prod(self.loops[i].extent // tile[i] for i in chosen)


@dataclass(frozen=True)
class Buffers:
    """The on-chip buffers of one operand: all of its copies together have `bytes`."""

    name: str
    space: str
    bytes: int


@dataclass(frozen=True)
class Footprint:
    """What one tile occupies."""

    buffers: tuple[Buffers, ...]

    def bytes(self, space: str) -> int:
        return sum(buffer.bytes for buffer in self.buffers if buffer.space == space)

    def largest(self, space: str, count: int = 3) -> list[Buffers]:
        own = [buffer for buffer in self.buffers if buffer.space == space]
        return sorted(own, key=lambda buffer: (-buffer.bytes, buffer.name))[:count]


def footprint(
    shape: KernelShape,
    tile: Sequence[int],
    alignments: Mapping[str, int],
    copies: Mapping[str, int] | None = None,
) -> Footprint:
    """What a tile occupies; `copies` gives operands more than one buffer (default one each)."""
    copies = copies or {}
    buffers = []
    for access in shape.accesses:
        alignment = alignments[access.space]
        size = -(-access.bytes(tile) // alignment) * alignment
        buffers.append(Buffers(access.name, access.space, size * copies.get(access.name, 1)))
    return Footprint(tuple(buffers))
