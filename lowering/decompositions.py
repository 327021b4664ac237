"""How ATen calls are spelled before torch-mlir sees them.

A region is traced again with `NPU_DECOMPOSITIONS`. The table holds only what torch-mlir lowers wrongly
(NaN lost in clamps), slowly (comparisons with numbers in f64, an assertion in batch normalization), or in
a form that our passes do not want (bias as the initial value of a convolution). Everything else that the
support rules let through it lowers well by itself.

A decomposition that returns NotImplemented leaves the call as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

aten = torch.ops.aten

NPU_DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable] = {}


def _decomposes(*overloads: torch._ops.OpOverload) -> Callable[[Callable], Callable]:
    def register(function: Callable) -> Callable:
        NPU_DECOMPOSITIONS.update(dict.fromkeys(overloads, function))
        return function

    return register


def _constant(value: float, like: Tensor) -> Tensor:
    """A number as a tensor: torch-mlir compares a tensor and a Python number in f64."""
    return aten.scalar_tensor(value, dtype=like.dtype)


def _select(condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return aten.where.self(condition, first, second)


# ---- convolution and matrix products ------------------------------------------------------------


@_decomposes(aten.convolution.default)
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
    """Bias as an addition of its own; 1-D as 2-D of height 1; depthwise with a multiplier m as depthwise
    on channels repeated m times."""
    if transposed:
        return NotImplemented
    if bias is not None:
        out = aten.convolution(x, weight, None, stride, padding, dilation, False, output_padding, groups)
        return out + _per_channel(bias, out)
    if x.dim() == 3:
        out = aten.convolution(
            x.unsqueeze(2), weight.unsqueeze(2), None,
            [1, *stride], [0, *padding], [1, *dilation], False, [0, *output_padding], groups,
        )  # fmt: skip
        return aten.squeeze.dim(out, 2)
    channels, multiplier = x.shape[1], weight.shape[0] // groups
    if groups == channels > 1 and multiplier > 1:
        repeated = _repeat_channels(x, multiplier)
        return aten.convolution(
            repeated, weight, None, stride, padding, dilation, False, output_padding, groups * multiplier
        )
    return NotImplemented


def _per_channel(values: Tensor, like: Tensor) -> Tensor:
    return aten.view(values, [1, values.shape[0]] + [1] * (like.dim() - 2))


def _repeat_channels(x: Tensor, times: int) -> Tensor:
    n, c, *image = x.shape
    repeated = aten.expand(aten.unsqueeze(x, 2), [n, c, times, *image])
    return aten.view(repeated, [n, c * times, *image])


@_decomposes(aten.addmm.default)
def addmm(bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _scaled_sum(bias, aten.mm(left, right), beta, alpha)


@_decomposes(aten.baddbmm.default)
def baddbmm(bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _scaled_sum(bias, aten.bmm(left, right), beta, alpha)


def _scaled_sum(bias: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    product = product if alpha == 1 else product * alpha
    if beta == 0:  # documented: then NaN in the bias does not reach the result
        return product
    return product + (bias if beta == 1 else bias * beta)


# ---- normalization ------------------------------------------------------------------------------


def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float
) -> Tensor:
    """x * scale + shift, with scale and shift made of parameters only, as eager does on the cpu."""
    scale = aten.rsqrt(var + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return x * _per_channel(scale, x) + _per_channel(shift, x)


@_decomposes(aten._native_batch_norm_legit_no_training.default)
def batch_norm_no_training(x, weight, bias, mean, var, momentum, eps) -> tuple[Tensor, ...]:
    return _batch_norm(x, weight, bias, mean, var, eps), x.new_empty(0), x.new_empty(0)


@_decomposes(aten._batch_norm_no_update.default)
def batch_norm_no_update(x, weight, bias, mean, var, momentum, eps) -> tuple[Tensor, ...]:
    nothing = x.new_empty(0)
    return _batch_norm(x, weight, bias, mean, var, eps), nothing, nothing, nothing


@_decomposes(aten.native_batch_norm.default)
def native_batch_norm(x, weight, bias, mean, var, training, momentum, eps) -> tuple[Tensor, ...]:
    if training:
        return NotImplemented
    return _batch_norm(x, weight, bias, mean, var, eps), x.new_empty(0), x.new_empty(0)


@_decomposes(aten.cudnn_batch_norm.default)
def cudnn_batch_norm(x, weight, bias, mean, var, training, momentum, eps) -> tuple[Tensor, ...]:
    if training:
        return NotImplemented
    nothing = x.new_empty(0)
    return _batch_norm(x, weight, bias, mean, var, eps), nothing, nothing, nothing


@_decomposes(aten._native_batch_norm_legit_functional.default)
def batch_norm_functional(x, weight, bias, mean, var, training, momentum, eps) -> tuple[Tensor, ...]:
    if training:
        return NotImplemented
    return _batch_norm(x, weight, bias, mean, var, eps), x.new_empty(0), x.new_empty(0), mean, var


# ---- activations --------------------------------------------------------------------------------


@_decomposes(aten.clamp.default)
def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """NaN fails both comparisons and stays. If min > max the result is max, as in eager."""
    if min is not None:
        low = _constant(min, x)
        x = _select(x < low, low, x)
    if max is not None:
        high = _constant(max, x)
        x = _select(x > high, high, x)
    return x


@_decomposes(aten.clamp_min.default)
def clamp_min(x: Tensor, min: float) -> Tensor:
    return clamp(x, min, None)


@_decomposes(aten.clamp_max.default)
def clamp_max(x: Tensor, max: float) -> Tensor:
    return clamp(x, None, max)


@_decomposes(aten.hardtanh.default)
def hardtanh(x: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return clamp(x, min_val, max_val)


@_decomposes(aten.hardswish.default)
def hardswish(x: Tensor) -> Tensor:
    return x * clamp(x + 3, 0, 6) / 6


@_decomposes(aten.hardsigmoid.default)
def hardsigmoid(x: Tensor) -> Tensor:
    return clamp(x + 3, 0, 6) / 6


@_decomposes(aten.leaky_relu.default)
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return _select(x > _constant(0, x), x, x * negative_slope)


@_decomposes(aten._prelu_kernel.default)
def prelu_kernel(x: Tensor, weight: Tensor) -> Tensor:
    return _select(x > _constant(0, x), x, x * weight)


@_decomposes(aten.elu.default)
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """expm1(z) as 2t / (1 - t) with t = tanh(z / 2): for z <= 0 it keeps the precision near 0 that
    exp(z) - 1 loses."""
    t = aten.tanh(x * (input_scale / 2))
    negative = t * (2 * alpha * scale) / (1 - t)
    return _select(x > _constant(0, x), x * scale, negative)


@_decomposes(aten.softplus.default)
def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    z = x * beta
    return _select(z > _constant(threshold, x), x, _log1p_exp(z) / beta)


@_decomposes(aten.mish.default)
def mish(x: Tensor) -> Tensor:
    return x * aten.tanh(_log1p_exp(x))


def _log1p_exp(x: Tensor) -> Tensor:
    """log(1 + exp(x)) without overflow."""
    return aten.relu(x) + aten.log1p(aten.exp(-aten.abs(x)))


@_decomposes(aten.gelu.default)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return x * 0.5 * (1 + aten.erf(x * math.sqrt(0.5)))
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (1 + aten.tanh(inner))


@_decomposes(aten.reciprocal.default)
def reciprocal(x: Tensor) -> Tensor:
    return _constant(1, x) / x


# ---- pooling ------------------------------------------------------------------------------------


@_decomposes(aten._adaptive_avg_pool2d.default, aten.adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Divisible sizes only (a support rule): equal windows that do not overlap."""
    if list(output_size) == [1, 1]:
        return aten.mean.dim(x, [-2, -1], True)
    window = [extent // count for extent, count in zip(x.shape[-2:], output_size, strict=True)]
    return aten.avg_pool2d(x, window, window)


@_decomposes(aten.avg_pool2d.default)
def avg_pool2d(
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Where windows count different numbers of elements: sums of a padded image, divided by a constant
    image of counts."""
    kernel = _pair(kernel_size)
    stride = _pair(stride) if stride else kernel
    padding = _pair(padding)
    axes = [
        _window_counts(extent, *window, ceil_mode, count_include_pad)
        for extent, window in zip(x.shape[-2:], zip(kernel, stride, padding), strict=True)
    ]
    overhangs = [
        max(0, (len(counts) - 1) * step + size - (extent + 2 * pad))
        for counts, size, step, pad, extent in zip(axes, kernel, stride, padding, x.shape[-2:], strict=True)
    ]
    uniform = all(set(counts) == {size} for counts, size in zip(axes, kernel, strict=True))
    if not any(overhangs) and (divisor_override or uniform):
        return NotImplemented
    (top, left), (down, right) = padding, overhangs
    padded = aten.constant_pad_nd(x, [left, left + right, top, top + down], 0.0)
    sums = aten.avg_pool2d(padded, kernel, stride, [0, 0], False, True, 1)
    if divisor_override:
        return sums / divisor_override
    if uniform:
        return sums / (kernel[0] * kernel[1])
    counts = [[float(rows * columns) for columns in axes[1]] for rows in axes[0]]
    return sums / torch.tensor([[counts]], dtype=x.dtype)


def _pair(values: Sequence[int]) -> list[int]:
    return list(values) * 2 if len(values) == 1 else list(values)


def _window_counts(
    extent: int, size: int, step: int, pad: int, ceil_mode: bool, count_include_pad: bool
) -> list[int]:
    """Elements that each window along one axis divides by, as many as there are windows."""
    span = extent + 2 * pad - size
    windows = (-(-span // step) if ceil_mode else span // step) + 1
    if ceil_mode and (windows - 1) * step >= extent + pad:  # it would start in the right padding
        windows -= 1
    counts = []
    for start in range(-pad, -pad + windows * step, step):
        end = min(start + size, extent + pad)
        counts.append(end - start if count_include_pad else min(end, extent) - max(start, 0))
    return counts


# ---- shapes -------------------------------------------------------------------------------------


@_decomposes(aten.view.default, aten._unsafe_view.default)
def view(x: Tensor, size: Sequence[int]) -> Tensor:
    """Inside a region memory order is the compiler's choice, so a view may look at permuted tensors."""
    if x.is_contiguous():
        return NotImplemented
    return aten.view(aten.clone(x, memory_format=torch.contiguous_format), size)


@_decomposes(aten.squeeze.dims)
def squeeze_dims(x: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted((dim % x.dim() for dim in dims), reverse=True):
        x = aten.squeeze.dim(x, dim)
    return x


@_decomposes(aten.alias.default, aten.detach.default, aten.lift_fresh.default, aten.lift_fresh_copy.default)
def same(x: Tensor) -> Tensor:
    return x
