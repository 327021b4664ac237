"""Convolutions and matrix products: no bias inside, two dimensions, depthwise without
multiplier."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from mlir_npu.lowering.decompose_transposed_convolution import transposed_convolution
from mlir_npu.lowering.decompose_volume import convolution_3d
from mlir_npu.lowering.decompose_volume_backward import transposed_convolution_3d
from mlir_npu.lowering.decomposition_table import aten, decomposes, per_channel


@decomposes(aten.convolution.default)
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Bias as an addition of its own; 1-D as 2-D of height 1; transposed as convolutions;
    depthwise with a multiplier m as depthwise on channels repeated m times."""
    if bias is not None:
        out = aten.convolution(
            x, weight, None, stride, padding, dilation, transposed, output_padding, groups
        )
        return out + per_channel(bias, out)
    if x.dim() == 3:
        out = aten.convolution(
            x.unsqueeze(2), weight.unsqueeze(2), None, [1, *stride], [0, *padding],
            [1, *dilation], transposed, [0, *output_padding], groups,
        )  # fmt: skip
        return aten.squeeze.dim(out, 2)
    if x.dim() == 5 and not transposed:
        return convolution_3d(x, weight, stride, padding, dilation, groups)
    if transposed:
        transposed_n_d = transposed_convolution_3d if x.dim() == 5 else transposed_convolution
        spans = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
        out_size = [(n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, k, s, p, d, extra in spans]
        return transposed_n_d(x, weight, out_size, stride, padding, dilation, groups)
    channels, multiplier = x.shape[1], weight.shape[0] // groups
    if groups == channels > 1 and multiplier > 1:
        repeated = _repeat_channels(x, multiplier)
        return aten.convolution(
            repeated,
            weight,
            None,
            stride,
            padding,
            dilation,
            False,
            output_padding,
            groups * multiplier,
        )
    return NotImplemented


def _repeat_channels(x: Tensor, times: int) -> Tensor:
    n, c, *image = x.shape
    repeated = aten.expand(aten.unsqueeze(x, 2), [n, c, times, *image])
    return aten.view(repeated, [n, c * times, *image])


@decomposes(aten.addmm.default)
def addmm(
    bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return _scaled_sum(bias, aten.mm(left, right), beta, alpha)


@decomposes(aten.baddbmm.default)
def baddbmm(
    bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return _scaled_sum(bias, aten.bmm(left, right), beta, alpha)


def _scaled_sum(bias: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    product = product if alpha == 1 else product * alpha
    if beta == 0:  # documented: then NaN in the bias does not reach the result
        return product
    return product + (bias if beta == 1 else bias * beta)
