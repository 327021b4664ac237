"""Gradients of 2-D convolutions by their weights, as convolutions and sums."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten


def weight_gradient(
    x: Tensor,
    grad: Tensor,
    shape: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Of the weights k, c / groups, rows, columns of a convolution from x to grad.

    The taps are the pixels of a convolution over the images' pixels: the batch is what it sums
    over, input channels are its batch, and stride and dilation change places.
    """
    k, c, *taps = shape
    if groups > 1 and c == 1 and k == groups:
        return _depthwise_weight_gradient(x, grad, taps, stride, padding, dilation)
    x = _reached(x, grad.shape[2:], taps, stride, padding, dilation)
    n, _, *size = x.shape
    if groups == 1:
        image = aten.transpose(x, 0, 1)
    else:
        by_group = aten.permute(aten.view(x.contiguous(), [n, groups, c, *size]), [2, 1, 0, 3, 4])
        image = aten.view(by_group.contiguous(), [c, groups * n, *size])
    filters = aten.transpose(grad, 0, 1)
    out = aten.convolution(image, filters, None, dilation, [0, 0], stride, False, [0, 0], groups)
    return aten.transpose(out, 0, 1)


def _reached(
    x: Tensor,
    out: Sequence[int],
    taps: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """x with its padding, up to the last pixel that a tap meets."""
    sizes = zip(x.shape[2:], out, taps, stride, padding, dilation, strict=True)
    ends = [(o - 1) * s + d * (k - 1) + 1 - n - p for n, o, k, s, p, d in sizes]
    for dim, end in zip((2, 3), ends):
        if end < 0:
            x = aten.slice(x, dim, 0, x.shape[dim] + end)
    rows, columns = padding
    border = [columns, max(ends[1], 0), rows, max(ends[0], 0)]
    return aten.constant_pad_nd(x, border, 0.0) if any(border) else x


def _depthwise_weight_gradient(
    x: Tensor,
    grad: Tensor,
    taps: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Tap by tap the sum of products of the gradient with the pixels under it."""
    padded = _reached(x, grad.shape[2:], taps, stride, padding, dilation)
    height, width = grad.shape[2:]
    sums = []
    for r in range(taps[0]):
        lines = aten.slice(
            padded, 2, r * dilation[0], r * dilation[0] + (height - 1) * stride[0] + 1, stride[0]
        )
        for s in range(taps[1]):
            first = s * dilation[1]
            pixels = aten.slice(lines, 3, first, first + (width - 1) * stride[1] + 1, stride[1])
            sums.append(aten.sum.dim_IntList(grad * pixels, [0, 2, 3]))
    stacked = aten.cat([aten.view(total, [-1, 1]) for total in sums], 1)
    return aten.view(stacked, [grad.shape[1], 1, *taps])
