"""What calls compute with dequantised tensors that are integers still (quantized_values.py).

A rule takes the interpreter and the arguments by name, and returns the value, or None to have the
call run on floats.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mlir_npu.lowering import quantized_values as integers
from mlir_npu.lowering.decompose_adaptive_pooling import equal_windows
from mlir_npu.lowering.decompose_pooling import window_counts
from mlir_npu.lowering.quantized_values import SHIFTS, Dequantized, Integers, as_tensor
from mlir_npu.lowering.support.rules import pair
from mlir_npu.passes.analysis.byte_sums import MAX_TERMS

_WHOLE_RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


def _dequantize(_, input, scale, zero_point, dtype, out_dtype, **limits):
    if out_dtype not in (None, torch.float32):
        return None
    values = _values(input, dtype)
    if values is None:
        wide = integers.cast(input, torch.float32)
        return (wide - zero_point if zero_point else wide) * scale
    return Dequantized(values, scale, zero_point - SHIFTS[dtype])


def _dequantize_channels(run, input, scales, zero_points, axis, dtype, out_dtype, **limits):
    if out_dtype not in (None, torch.float32):
        return None
    values = _values(input, dtype)
    if values is not None and dtype == torch.int8 and run.holds_zeros(zero_points):
        return Dequantized(values, scales, 0, axis % values.dim())
    wide = integers.cast(as_tensor(input), torch.float32)
    axis %= wide.dim()
    if zero_points is not None:
        points = integers.cast(zero_points, torch.float32)
        wide = wide - integers.along(points, wide, axis)
    return wide * integers.along(scales, wide, axis)


def _values(x: Tensor | Integers, dtype: torch.dtype) -> Tensor | None:
    if isinstance(x, Integers):
        return x.values
    return integers.signed(x) if dtype in SHIFTS else None


def _quantize(_, input, scale, zero_point, quant_min, quant_max, dtype):
    if dtype not in SHIFTS or isinstance(input, Integers):
        return None
    if isinstance(input, Dequantized):
        same = input.is_plain and (input.scale, input.zero) == (scale, zero_point - SHIFTS[dtype])
        if same and (quant_min, quant_max) == _WHOLE_RANGES[dtype]:
            return Integers(input.values, dtype)
        input = input.tensor()
    return integers.quantize(input, scale, zero_point, quant_min, quant_max, dtype)


def _quantize_channels(_, input, scales, zero_points, axis, quant_min, quant_max, dtype):
    if dtype not in SHIFTS or isinstance(input, (Dequantized, Integers)):
        return None
    axis, shift = axis % input.dim(), SHIFTS[dtype]
    input = integers.cast(input, torch.float32)
    inverse = integers.along(torch.ops.aten.reciprocal(scales), input, axis)
    points = integers.along(integers.cast(zero_points, torch.float32), input, axis)
    rounded = torch.ops.aten.round(input * inverse) + points - shift
    return integers.stored(rounded, quant_min, quant_max, dtype)


def _convolution(
    run, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
):
    if transposed or not _is_product(input, weight, 0):
        return None
    if weight.values[0].numel() > MAX_TERMS:
        return None
    out = integers.convolution(input, weight, stride, padding, dilation, groups)
    if bias is None:
        return out
    return out + integers.per_channel(as_tensor(bias), out)


def _mm(_, self, mat2):
    if not _is_product(self, mat2, 1) or mat2.values.shape[0] > MAX_TERMS:
        return None
    return integers.product(self, mat2)


def _addmm(run, self, mat1, mat2, beta, alpha):
    if beta != 1 or alpha != 1 or (out := _mm(run, mat1, mat2)) is None:
        return None
    return out + as_tensor(self)


def _is_product(x: object, weight: object, axis: int) -> bool:
    """Whether x is integers with one scale, and weight such with zero points of 0, and scales along
    `axis` or one for all."""
    if not (isinstance(x, Dequantized) and isinstance(weight, Dequantized)):
        return False
    return x.axis is None and weight.zero == 0 and weight.axis in (None, axis)


def _mean(_, self, dim, keepdim, dtype):
    if not isinstance(self, Dequantized) or self.axis is not None or not dim or dtype is not None:
        return None
    dims = [d % self.values.dim() for d in pair(dim, 1)]
    return integers.mean(self, dims, keepdim)


def _average_pool(
    _, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    if not isinstance(self, Dequantized) or self.axis is not None or divisor_override:
        return None
    window, pads = pair(kernel_size), pair(padding)
    steps = pair(stride) if stride else window
    for axis in zip(self.values.shape[-2:], window, steps, pads, strict=True):
        if set(window_counts(*axis, ceil_mode, count_include_pad)) != {axis[1]} or ceil_mode:
            return None
    return integers.average_pool(self, window, steps, pads)


def _adaptive_average(run, self, output_size):
    """Of windows that differ, the averages are means of means, as of floats: their sums overlap."""
    if not isinstance(self, Dequantized):
        return None
    out = pair(output_size)
    if list(out) == [1, 1]:
        return _mean(run, self, [-2, -1], True, None)
    window = equal_windows(self.values.shape[-2:], out)
    if window is None:
        return None
    return _average_pool(run, self, window, window, [0, 0], False, True, None)


def _max_pool(_, self, **window):
    if not isinstance(self, Dequantized) or not self.is_plain:
        return None
    pool = torch.ops.aten.max_pool2d_with_indices
    return self.moved(lambda values: pool(values, **window)[0]), None


def _cat(_, tensors, dim):
    if not all(isinstance(part, Dequantized) for part in tensors):
        return None
    first = tensors[0]
    if not all(first.is_like(part) for part in tensors):
        return None
    return first.moved(lambda _: torch.ops.aten.cat([part.values for part in tensors], dim))


def _pad(_, self, pad, value):
    if not isinstance(self, Dequantized) or self.axis is not None or value != 0:
        return None
    return self.moved(lambda values: torch.ops.aten.constant_pad_nd(values, pad, self.zero))


def _moving(overload: torch._ops.OpOverload) -> Callable:
    """Rule of a call that moves elements of its argument `self`."""

    def rule(_, self, **rest):
        if not isinstance(self, Dequantized) or self.axis is not None:
            return None
        return self.moved(lambda values: overload(values, **rest))

    return rule


def _transposing(order: Callable) -> Callable:
    """Rule of a call that permutes dimensions: `order(rank, ...)` is the permutation."""

    def rule(_, self, **rest):
        if not isinstance(self, Dequantized):
            return None
        dims = order(self.values.dim(), **rest)
        axis = None if self.axis is None else dims.index(self.axis)
        return self.moved(lambda values: torch.ops.aten.permute(values, dims), axis)

    return rule


def _permuted(rank: int, dims: list[int]) -> list[int]:
    return [dim % rank for dim in dims]


def _swapped(rank: int, dim0: int = 0, dim1: int = 1) -> list[int]:
    order = list(range(rank))
    if rank > 1:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return order


_MOVES = (
    *("view.default", "reshape.default", "_unsafe_view.default", "expand.default"),
    *("unsqueeze.default", "squeeze.dim", "squeeze.dims", "slice.Tensor", "select.int"),
    *("clone.default", "detach.default", "alias.default"),
)

RULES: dict[str, Callable] = {
    "quantized_decomposed.dequantize_per_tensor.default": _dequantize,
    "quantized_decomposed.dequantize_per_channel.default": _dequantize_channels,
    "quantized_decomposed.quantize_per_tensor.default": _quantize,
    "quantized_decomposed.quantize_per_channel.default": _quantize_channels,
    "aten.convolution.default": _convolution,
    "aten.mm.default": _mm,
    "aten.addmm.default": _addmm,
    "aten.mean.dim": _mean,
    "aten.avg_pool2d.default": _average_pool,
    "aten._adaptive_avg_pool2d.default": _adaptive_average,
    "aten.adaptive_avg_pool2d.default": _adaptive_average,
    "aten.max_pool2d_with_indices.default": _max_pool,
    "aten.cat.default": _cat,
    "aten.constant_pad_nd.default": _pad,
    "aten.permute.default": _transposing(_permuted),
    "aten.transpose.int": _transposing(_swapped),
    "aten.t.default": _transposing(_swapped),
}


def _register_moves() -> None:
    for name in _MOVES:
        packet, overload = name.split(".")
        call = getattr(getattr(torch.ops.aten, packet), overload)
        RULES[f"aten.{name}"] = _moving(call)


_register_moves()
