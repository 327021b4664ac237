"""Register tiles of matrix micro-kernels: how many pixels and channel vectors they accumulate.

A micro-kernel holds `pixels x vectors` accumulators in registers while it walks the reduction.
Every step loads `vectors` weight vectors and one broadcast input scalar per pixel. The smaller
side is loaded first and held, the larger side is streamed one at a time, so a step needs

    pixels * vectors + min(pixels, vectors) + 1

registers. One more than the machine has and the accumulators spill, at a third of the speed: every
tile goes through `check_registers`.

Numbers are counts of vectors and registers of the target's vector unit; nothing needs MLIR.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol


class VectorUnit(Protocol):
    """What a tile needs to know of the machine: f32 lanes per register and registers."""

    lanes: int
    registers: int


@dataclass(frozen=True)
class CpuVectors:
    """The vector unit of a CPU. multiplies_bytes: it adds up products of four bytes per lane."""

    lanes: int
    registers: int
    multiplies_bytes: bool = False


class TargetWithVectors(Protocol):
    """Anything with a vector unit, in practice `mlir_npu.dialect.target.Target`."""

    vector: VectorUnit


@dataclass(frozen=True)
class RegisterTile:
    """`rows x columns` pixels times `blocks` channel blocks, all accumulated at once."""

    rows: int
    columns: int
    blocks: int

    @property
    def pixels(self) -> int:
        return self.rows * self.columns


@dataclass(frozen=True)
class Span:
    """`count` tiles of `size` elements from `start`: the main part of a dimension, or its rest."""

    start: int
    count: int
    size: int


# Independent accumulators that keep the FMA units busy: latency times units, in the usual case.
BUSY_ACCUMULATORS = 8
# What a load adds to a step, in FMA issue slots: scalars come from L1, weights often from L2.
# Fitted to measured tiles on 16 and on 32 registers.
SCALAR_LOAD_COST = 0.6
VECTOR_LOAD_COST = 0.75
# The same of a vector that is put together from two; the order in which it is takes registers too.
SHUFFLED_LOAD_COST, SHUFFLE_REGISTERS = 3.0, 2
# Loop control and address updates of one reduction step, in the same slots.
STEP_OVERHEAD = 1.0
# Share of the time that one more tile shape must save: each is code to compile and to fetch.
SHAPE_COST = 0.05
# Blocks of more vectors than this make the tile too narrow in pixels.
MAX_BLOCK_VECTORS = 4
# First-level cache: bytes after which addresses share a set again, bytes of a line, and lines of
# one set that pixels may occupy so that weights keep theirs. Pixels a power of two apart collide.
SET_PERIOD, LINE_BYTES, LINES_PER_SET = 4096, 64, 7


def registers_needed(pixels: int, vectors: int) -> int:
    """Registers live in one reduction step of a `pixels x vectors` tile."""
    return pixels * vectors + min(pixels, vectors) + 1


def check_registers(pixels: int, vectors: int, unit: VectorUnit) -> None:
    """Raise ValueError if the tile would spill."""
    needed = registers_needed(pixels, vectors)
    if needed > unit.registers:
        raise ValueError(
            f"a tile of {pixels} pixels x {vectors} vectors needs {needed} of "
            f"{unit.registers} registers; "
            "use fewer pixels or a smaller channel block"
        )


def vector_pieces(extent: int, lanes: int) -> tuple[int, ...]:
    """Split `extent` elements into full vectors and power-of-two rests: (40, 16) -> (16, 16, 8)."""
    if extent < 1 or lanes < 1:
        raise ValueError(f"extent and lanes must be positive, got {extent} and {lanes}")
    pieces = [lanes] * (extent // lanes)
    rest = extent % lanes
    while rest:
        piece = 1 << (rest.bit_length() - 1)
        pieces.append(piece)
        rest -= piece
    return tuple(pieces)


def split(extent: int, size: int) -> tuple[Span, ...]:
    """Cover `extent` by tiles of `size` and, where it does not divide, one smaller tile."""
    count, rest = divmod(extent, size)
    spans = [Span(0, count, size)] if count else []
    if rest:
        spans.append(Span(count * size, 1, rest))
    return tuple(spans)


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def choose_channel_block(channels: int, target: TargetWithVectors) -> int:
    """Channels per weight block (Ki), a divisor of `channels`.

    The block with the fewest vectors per channel wins, among equals the smallest: several blocks
    can share one register tile, so small blocks lose nothing and tile more freely.
    """
    lanes = target.vector.lanes

    def cost(block: int) -> tuple[float, int]:
        return len(vector_pieces(block, lanes)) / block, block

    # Wide blocks leave too few registers for pixels.
    limit = MAX_BLOCK_VECTORS * lanes
    candidates = [d for d in divisors(channels) if d <= limit and fits(1, d, target.vector)]
    return min(candidates, key=cost)


def fits(pixels: int, channels: int, unit: VectorUnit) -> bool:
    return registers_needed(pixels, len(vector_pieces(channels, unit.lanes))) <= unit.registers


def step_cost(pixels: int, vectors: int, vector_load: float = VECTOR_LOAD_COST) -> float:
    """FMA issue slots of one reduction step: arithmetic or latency, and what loads add."""
    loads = SCALAR_LOAD_COST * pixels + vector_load * vectors
    return max(pixels * vectors, BUSY_ACCUMULATORS) + loads + STEP_OVERHEAD


def grid_cost(
    tile: RegisterTile,
    rows: int,
    columns: int,
    blocks: int,
    block_vectors: int,
    vector_load: float = VECTOR_LOAD_COST,
) -> float:
    """Cost per reduction element of a whole `rows x columns x blocks` grid under `tile`."""
    shapes = [
        (r.count * c.count * b.count, r.size * c.size, b.size * block_vectors)
        for r in split(rows, tile.rows)
        for c in split(columns, tile.columns)
        for b in split(blocks, tile.blocks)
    ]
    slots = sum(
        count * step_cost(pixels, vectors, vector_load) for count, pixels, vectors in shapes
    )
    return slots * (1 + SHAPE_COST * (len(shapes) - 1))


def lines_in_one_set(tile: RegisterTile, pixel_bytes: tuple[int, int]) -> int:
    """Most cache lines of one set that the pixels of a tile, `pixel_bytes` apart, touch."""
    row, column = pixel_bytes
    lines = {
        (r * row + c * column) // LINE_BYTES for r in range(tile.rows) for c in range(tile.columns)
    }
    sets = Counter(line % (SET_PERIOD // LINE_BYTES) for line in lines)
    return max(sets.values())


def choose_register_tile(
    rows: int,
    columns: int,
    blocks: int,
    block_channels: int,
    unit: VectorUnit,
    pixel_bytes: tuple[int, int] = (0, 0),
    vector_load: float = VECTOR_LOAD_COST,
) -> RegisterTile:
    """Cheapest tile for `rows x columns` pixels and `blocks` blocks of `block_channels` channels.

    `pixel_bytes`: distance of neighbouring rows and columns in the input; `vector_load`: cost of
    loading a vector. Raises ValueError when not even one pixel by one block fits the registers.
    """
    block_vectors = len(vector_pieces(block_channels, unit.lanes))
    check_registers(1, block_vectors, unit)
    tiles = [
        RegisterTile(r, c, b)
        for b in range(1, min(blocks, unit.registers // block_vectors) + 1)
        for r in range(1, min(rows, unit.registers) + 1)
        for c in range(1, min(columns, unit.registers // r) + 1)
        if registers_needed(r * c, b * block_vectors) <= unit.registers and (r == 1 or c == columns)
    ]
    tiles = [t for t in tiles if lines_in_one_set(t, pixel_bytes) <= LINES_PER_SET]
    return min(
        tiles,
        key=lambda t: (
            grid_cost(t, rows, columns, blocks, block_vectors, vector_load),
            -t.pixels,
            t.rows,
        ),
    )
