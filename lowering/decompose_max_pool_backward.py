"""The gradient of 2-D max pooling: every window gives all of its gradient to its maximum."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from mlir_npu.lowering.convolution_phases import Phase, phases
from mlir_npu.lowering.decompose_transposed_convolution import padded, spread
from mlir_npu.lowering.decomposition_table import aten, constant, decomposes, select
from mlir_npu.lowering.max_pool_gradient import max_pool2d_backward


@decomposes(max_pool2d_backward)
def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Tensor:
    """The number of the tap with the maximum, for each window; then for each pixel the gradients of
    the windows in which it is that tap."""
    out = grad.shape[2:]
    taps = _taps(x, out, kernel, stride, padding, dilation)
    winner = _first_maximum(taps, _first_inside(x, out, stride, padding, dilation, kernel[1]))
    reached = all(o * k == n for o, k, n in zip(out, kernel, x.shape[2:], strict=True))
    touching = list(kernel) == list(stride) and set(dilation) == {1}
    if reached and touching and not any(padding):
        return _tiled(grad, winner, kernel)
    axes = [
        phases(*axis)
        for axis in zip(out, x.shape[2:], kernel, stride, padding, dilation, strict=True)
    ]
    return spread(lambda *phase: _gathered(grad, winner, phase, kernel[1]), axes, x.shape)


def _taps(x: Tensor, out: Sequence[int], *window: Sequence[int]) -> list[Tensor]:
    """For each tap of the window, line by line, the pixels under it."""
    axes = list(zip(out, x.shape[2:], *window, strict=True))
    ends = [(o - 1) * s + (k - 1) * d + 1 - n - p for o, n, k, s, p, d in axes]
    (top, left), (down, right) = window[2], [max(end, 0) for end in ends]
    if any((top, left, down, right)):
        x = aten.constant_pad_nd(x, [left, right, top, down], -torch.inf)
    lines = [_steps(x, 2, r, *axes[0]) for r in range(axes[0][2])]
    return [_steps(line, 3, s, *axes[1]) for line in lines for s in range(axes[1][2])]


def _steps(
    x: Tensor, dim: int, tap: int, out: int, _n: int, _k: int, step: int, _p: int, apart: int
) -> Tensor:
    first = tap * apart
    return aten.slice.Tensor(x, dim, first, first + (out - 1) * step + 1, step)


def _first_inside(
    x: Tensor,
    out: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    columns: int,
) -> Tensor:
    """For each window the number of its first tap that is not in the padding: it is the maximum of
    a window in which everything is minus infinity."""
    if not any(padding):
        return constant(0, x)
    with _disable_current_modes():  # a literal of the traced graph, not a traced computation
        rows, places = (
            torch.tensor([-(min(i * s - p, 0) // d) for i in range(o)], dtype=x.dtype)
            for o, s, p, d in zip(out, stride, padding, dilation, strict=True)
        )
        return (rows[:, None] * columns + places).view(1, 1, *out)


def _first_maximum(taps: Sequence[Tensor], first: Tensor) -> Tensor:
    """As eager finds it: a later tap must be larger, or NaN, of which the last counts."""
    best, winner = taps[0], first
    for number, tap in enumerate(taps[1:], start=1):
        wins = aten.logical_or(aten.gt.Tensor(tap, best), aten.ne.Tensor(tap, tap))
        best = select(wins, tap, best)
        winner = select(wins, constant(number, tap), winner)
    return aten.expand(winner, best.shape) if len(taps) == 1 else winner


def _tiled(grad: Tensor, winner: Tensor, kernel: Sequence[int]) -> Tensor:
    """Windows that touch and fill the image: each pixel is in one."""
    n, c, height, width = grad.shape
    rows, columns = kernel
    with _disable_current_modes():  # a literal of the traced graph, not a traced computation
        numbers = torch.arange(rows * columns, dtype=grad.dtype).view(1, 1, 1, rows, 1, columns)
    cells = [n, c, height, 1, width, 1]
    taken = aten.eq.Tensor(aten.view(winner.contiguous(), cells), numbers)
    parts = select(taken, aten.view(grad.contiguous(), cells), constant(0, grad))
    return aten.view(parts.contiguous(), [n, c, height * rows, width * columns])


def _gathered(grad: Tensor, winner: Tensor, phase: tuple[Phase, Phase], columns: int) -> Tensor:
    """The sum over the taps that meet the pixels of a phase."""
    grad = padded(grad, *phase)  # with zeros, so that it does not matter who wins there
    winner = padded(winner, *phase)
    reach = [(len(axis.taps) - 1) * axis.dilation for axis in phase]
    height, width = (extent - far for extent, far in zip(grad.shape[2:], reach, strict=True))
    total = None
    for i, row in enumerate(phase[0].taps):
        for j, column in enumerate(phase[1].taps):
            top, left = i * phase[0].dilation, j * phase[1].dilation
            number = constant(row * columns + column, grad)
            taken = aten.eq.Tensor(_window(winner, top, left, height, width), number)
            part = select(taken, _window(grad, top, left, height, width), constant(0, grad))
            total = part if total is None else total + part
    return total


def _window(x: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    lines = aten.slice.Tensor(x, 2, top, top + height)
    return aten.slice.Tensor(lines, 3, left, left + width)
