"""Elements at positions that are known at compile time: slices, repetitions and their joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.decomposition_table import aten, decomposes


@dataclass(frozen=True)
class Piece:
    """`count` positions from `start` in steps of `step`, each `times` times in a row."""

    start: int
    count: int
    step: int = 1
    times: int = 1


def pieces(positions: Sequence[int]) -> list[Piece]:
    """Positions as pieces, each as long as it gets.

    [0, 0, 0, 1, 1, 2, 2, 3] is [0, 0, 0], then 1 and 2 twice each, then [3].
    """
    runs: list[list[int]] = []  # position, times
    for position in positions:
        if runs and runs[-1][0] == position:
            runs[-1][1] += 1
        else:
            runs.append([position, 1])
    found: list[Piece] = []
    first = 0
    while first < len(runs):
        count, step = _progression(runs, first)
        found.append(Piece(runs[first][0], count, step, runs[first][1]))
        first += count
    return found


def _progression(runs: list[list[int]], first: int) -> tuple[int, int]:
    """(runs from `first` with the same times and step, the step)."""
    if first + 1 == len(runs):
        return 1, 1
    step = runs[first + 1][0] - runs[first][0]
    if step < 1:
        return 1, 1
    last = first
    while (
        last + 1 < len(runs)
        and runs[last + 1][1] == runs[first][1]
        and runs[last + 1][0] - runs[last][0] == step
    ):
        last += 1
    return last - first + 1, step


def take(x: Tensor, dim: int, positions: Sequence[int]) -> Tensor:
    """The elements of `x` at `positions` along `dim`."""
    parts = [_part(x, dim, piece) for piece in pieces(positions)]
    return parts[0] if len(parts) == 1 else aten.cat(parts, dim)


def _part(x: Tensor, dim: int, piece: Piece) -> Tensor:
    end = piece.start + (piece.count - 1) * piece.step + 1
    part = aten.slice.Tensor(x, dim, piece.start, end, piece.step)
    if piece.times == 1:
        return part
    shape = list(part.shape)
    repeated = aten.expand(
        aten.unsqueeze(part, dim + 1), [*shape[: dim + 1], piece.times, *shape[dim + 1 :]]
    )
    shape[dim] *= piece.times
    return aten.reshape(repeated, shape)


def index_positions(index: Tensor, extent: int) -> list[int]:
    """Positions that a constant index of one dimension (but for 1s) names, from the front."""
    with _disable_current_modes():  # numbers, not a traced computation
        positions = index.reshape(-1).tolist()
    return [position + extent if position < 0 else position for position in positions]


@decomposes(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """A grid of constant positions, one dimension after the other (a support rule lets no other
    index through)."""
    for dim, positions in enumerate(indices):
        if positions is not None:
            x = take(x, dim, index_positions(positions, x.shape[dim]))
    return x


@decomposes(aten.index_select.default)
def index_select(x: Tensor, dim: int, positions: Tensor) -> Tensor:
    return take(x, dim % x.dim(), index_positions(positions, x.shape[dim]))


def reflected(extent: int, before: int, after: int) -> list[int]:
    last = extent - 1
    return [last - abs(last - abs(position)) for position in range(-before, extent + after)]


def replicated(extent: int, before: int, after: int) -> list[int]:
    return [min(max(position, 0), extent - 1) for position in range(-before, extent + after)]


def padded_positions(
    shape: Sequence[int], padding: Sequence[int], rule
) -> list[tuple[int, list[int]]]:
    """(dimension, positions) for each dimension that is padded; `padding` starts with the last."""
    found = []
    for number, (before, after) in enumerate(zip(padding[::2], padding[1::2], strict=True)):
        dim = len(shape) - 1 - number
        if before or after:
            found.append((dim, rule(shape[dim], before, after)))
    return found


@decomposes(
    aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default
)
def reflection_pad(x: Tensor, padding: Sequence[int]) -> Tensor:
    for dim, positions in padded_positions(x.shape, padding, reflected):
        x = take(x, dim, positions)
    return x


@decomposes(
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default
)
def replication_pad(x: Tensor, padding: Sequence[int]) -> Tensor:
    for dim, positions in padded_positions(x.shape, padding, replicated):
        x = take(x, dim, positions)
    return x
