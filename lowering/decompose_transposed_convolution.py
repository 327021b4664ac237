"""Transposed convolutions, which are gradients of convolutions by their input, as convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from torch import Tensor

from mlir_npu.lowering.convolution_phases import Phase, phases
from mlir_npu.lowering.decomposition_table import aten


def transposed_convolution(
    x: Tensor,
    weight: Tensor,
    out_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """2-D, without bias. x: n, k, height, width; weight: k, c / groups, rows, columns, that of the
    convolution from c to k channels; the result: n, c, *out_size."""
    axes = [
        phases(*axis)
        for axis in zip(
            x.shape[2:], out_size, weight.shape[2:], stride, padding, dilation, strict=True
        )
    ]
    swapped = _swap_channels(weight, groups)
    if _are_alike(axes):
        return cropped(_all_phases_at_once(x, swapped, axes, groups), out_size)

    def convolve(rows: Phase, columns: Phase) -> Tensor:
        return _convolve(x, _taps(swapped, rows, columns), rows, columns, groups)

    return spread(convolve, axes, [x.shape[0], swapped.shape[0], *out_size])


def spread(
    compute: Callable[[Phase, Phase], Tensor], axes: Sequence[Sequence[Phase]], shape: Sequence[int]
) -> Tensor:
    """The image of which `compute` makes the pixels of one phase of the rows and of the columns."""
    rows, columns = ([phase for phase in axis if phase.taps] for axis in axes)
    if not rows or not columns:  # every tap lies in the padding
        return aten.expand(aten.scalar_tensor(0.0), list(shape))
    lines = [interleaved([compute(r, c) for c in columns], axes[1], 3) for r in rows]
    return cropped(interleaved(lines, axes[0], 2), shape[2:])


def cropped(x: Tensor, size: Sequence[int]) -> Tensor:
    """The first rows and columns."""
    for dim, extent in zip((2, 3), size, strict=True):
        if x.shape[dim] != extent:
            x = aten.slice(x, dim, 0, extent)
    return x


def _swap_channels(weight: Tensor, groups: int) -> Tensor:
    """Weights of c outputs and k / groups inputs each."""
    k, c, *taps = weight.shape
    if groups == 1:
        return aten.transpose(weight, 0, 1)
    grouped = aten.transpose(aten.view(weight, [groups, k // groups, c, *taps]), 1, 2)
    return aten.view(grouped.contiguous(), [groups * c, k // groups, *taps])


def _are_alike(axes: Sequence[Sequence[Phase]]) -> bool:
    """Whether the phases differ in nothing but the taps they use, and there are several."""
    if not all(phase.taps for axis in axes for phase in axis):
        return False
    kinds = [{(len(p.taps), p.dilation, p.low, p.high) for p in axis} for axis in axes]
    return all(len(kind) == 1 for kind in kinds) and any(len(axis) > 1 for axis in axes)


def _all_phases_at_once(
    x: Tensor, weight: Tensor, axes: Sequence[Sequence[Phase]], groups: int
) -> Tensor:
    """Phases as further output channels of one convolution, then dealt out to their places."""
    rows, columns = axes
    filters = [_taps(weight, r, c) for r, c in itertools.product(rows, columns)]
    c, k, *taps = filters[0].shape
    split = [aten.view(f.contiguous(), [groups, 1, c // groups, k, *taps]) for f in filters]
    stacked = aten.view(aten.cat(split, 1), [len(filters) * c, k, *taps])
    out = _convolve(x, stacked, rows[0], columns[0], groups)
    n, _, height, width = out.shape
    parts = aten.view(out, [n, groups, len(rows), len(columns), c // groups, height * width])
    if groups > 1:
        parts = aten.view(aten.permute(parts, [0, 2, 3, 1, 4, 5]).contiguous(), parts.shape)
    parts = aten.view(parts, [n, len(rows), len(columns), c, height, width])
    dealt = aten.permute(parts, [0, 3, 4, 1, 5, 2]).contiguous()
    return aten.view(dealt, [n, c, height * len(rows), width * len(columns)])


def _convolve(x: Tensor, weight: Tensor, rows: Phase, columns: Phase, groups: int) -> Tensor:
    x, dilation = padded(x, rows, columns), [rows.dilation, columns.dilation]
    return aten.convolution(x, weight, None, [1, 1], [0, 0], dilation, False, [0, 0], groups)


def padded(x: Tensor, rows: Phase, columns: Phase) -> Tensor:
    """What a convolution of these phases reads."""
    for dim, phase in ((2, rows), (3, columns)):
        if min(phase.low, phase.high) < 0:
            end = x.shape[dim] + min(phase.high, 0)
            x = aten.slice(x, dim, max(-phase.low, 0), end)
    border = [max(side, 0) for phase in (columns, rows) for side in (phase.low, phase.high)]
    return aten.constant_pad_nd(x, border, 0.0) if any(border) else x


def _taps(weight: Tensor, rows: Phase, columns: Phase) -> Tensor:
    """The taps of a phase in its order, picked where whole matrices of channels lie together."""
    if len(rows.taps) == weight.shape[2] == 1 and len(columns.taps) == weight.shape[3] == 1:
        return weight
    matrices = aten.permute(weight, [2, 3, 0, 1]).contiguous()
    picked = _picked(_picked(matrices, 0, rows.taps), 1, columns.taps)
    return aten.permute(picked, [2, 3, 0, 1])


def _picked(x: Tensor, dim: int, taps: Sequence[int]) -> Tensor:
    """Elements `taps`, which descend by one step, along a dimension."""
    step = taps[0] - taps[1] if len(taps) > 1 else 1
    if len(taps) < x.shape[dim]:
        x = aten.slice(x, dim, taps[-1], taps[0] + 1, step)
    return _reversed(x, dim)


def _reversed(x: Tensor, dim: int) -> Tensor:
    """The cat of single elements; an extent that has factors factor by factor, for few parts."""
    extent = x.shape[dim]
    if extent == 1:
        return x
    outer = next(d for d in range(math.isqrt(extent), 0, -1) if extent % d == 0)
    if outer > 1:
        split = aten.view(
            x.contiguous(), [*x.shape[:dim], outer, extent // outer, *x.shape[dim + 1 :]]
        )
        return aten.view(_reversed(_reversed(split, dim), dim + 1), x.shape)
    return aten.cat([aten.slice(x, dim, i, i + 1) for i in reversed(range(extent))], dim)


def interleaved(parts: Sequence[Tensor], axis: Sequence[Phase], dim: int) -> Tensor:
    """Parts in turns along a dimension; zeros where a phase has no taps, and so no part."""
    if len(axis) == 1:
        return parts[0]
    places = [place for place, phase in enumerate(axis) if phase.taps]
    before = [place - previous - 1 for previous, place in zip([-1, *places], places)]
    behind = [0] * (len(parts) - 1) + [len(axis) - places[-1] - 1]
    shape = list(parts[0].shape)
    columns = []
    for part, *border in zip(parts, before, behind, strict=True):
        column = aten.view(part, [*shape[: dim + 1], 1, *shape[dim + 1 :]])
        sides = [0, 0] * (len(shape) - 1 - dim) + border
        columns.append(aten.constant_pad_nd(column, sides, 0.0) if any(border) else column)
    whole = aten.cat(columns, dim + 1) if len(columns) > 1 else columns[0]
    shape[dim] *= len(axis)
    return aten.view(whole, shape)
