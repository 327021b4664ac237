"""Prefetches of an operand that a contraction takes from memory piece by piece.

    for pieces:
        for tiles of the piece: for steps of the reduction:
            ask for a line of the next piece
            multiply, add

A contraction reads weights block by block. With few tiles of pixels a block is used a few times
only, and its first use, at the speed of memory, is a large part of the time. So it is with pixels
where one block of weights is all: they are read once. The lines of the next piece are asked for
evenly over the time of the current one: all at once they would hold up the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from mlir_npu.passes.analysis.loop_nest import Dim, merge
from mlir_npu.passes.analysis.register_tile import LINE_BYTES, RegisterTile
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.register_reduction import INPUT, WEIGHTS

# With more tiles than this the first use of a block hardly counts.
FEW_TILES = 48
# Larger pieces would push each other out of the second-level cache.
LARGEST_PIECE_BYTES = 1 << 19


@dataclass(frozen=True)
class Stream:
    """What to ask for, as one more operand of the nest.

    source: an operand that stands where the current piece begins; ahead: elements from there to the
    next piece; pixel, block, step: elements per iteration of these loops; lines: elements from
    there to what a step asks for.
    """

    source: Operand
    ahead: int
    pixel: int
    block: int
    step: int
    lines: tuple[int, ...]


def find_stream(
    operands: Sequence[Operand],
    pixels: Sequence[Dim],
    block: Dim,
    lanes: Dim,
    reduction: Sequence[Dim],
    tile: RegisterTile,
    moved: Operand | None = None,
) -> Stream | None:
    """The operand whose next piece is worth asking for. `moved`: where a move took weights from."""
    count, steps = (prod(dim.extent for dim in dims) for dims in (pixels, reduction))
    if moved is not None or block.extent > tile.blocks:
        if count > FEW_TILES * tile.pixels or not _is_dense([block, *reduction, lanes], WEIGHTS):
            return None
        source, block_step = moved or operands[WEIGHTS], steps * lanes.extent
        used = tile.blocks * block_step  # in the time that the pixels take
        pixel, step = used // count, -(-used * tile.pixels // (count * steps))
        ahead = used if moved is None else block.extent * block_step
    else:
        if count <= tile.pixels or not _is_dense([*pixels, *reduction], INPUT):
            return None
        source, block_step, pixel, step = operands[INPUT], 0, steps, tile.pixels
        ahead = tile.pixels * steps
    width = source.element.width // 8
    if ahead * width > LARGEST_PIECE_BYTES:
        return None
    line = LINE_BYTES // width
    lines = -(-step // line)
    step = step if lines == 1 else lines * line
    return Stream(source, ahead, pixel, block_step, step, tuple(range(0, lines * line, line)))


def with_linear_stride(dims: Sequence[Dim], step: int, at: int) -> tuple[Dim, ...]:
    """`dims` with an operand inserted at `at` that moves by `step` in every innermost iteration."""
    extended: list[Dim] = []
    for dim in reversed(dims):
        extended.insert(0, with_stride(dim, step, at))
        step *= dim.extent
    return tuple(extended)


def with_stride(dim: Dim, stride: int, at: int) -> Dim:
    return replace(dim, strides=(*dim.strides[:at], stride, *dim.strides[at:]))


def _is_dense(dims: Sequence[Dim], operand: int) -> bool:
    """Whether the loops walk one run of memory of the operand, each element once."""
    merged = merge(Dim(dim.extent, (dim.strides[operand],)) for dim in dims)
    return len(merged) == 1 and merged[0].strides == (1,)
