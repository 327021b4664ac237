"""How ATen calls of host parts are spelled before torch-mlir sees them.

First what torch-mlir lowers to other results than eager's (found by the parity tests), then what it
lowers well after torch's own decompositions, then what regions use, for tensors of floats.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, fx
from torch._decomp import get_decompositions

from mlir_npu.lowering.decompose_comparison import maximum, minimum
from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.fallback.llvm_ops import ARITHMETIC
from mlir_npu.lowering.half_precision import HALVES, in_single_precision, nearest
from mlir_npu.lowering.support.rules import find_rule

aten = torch.ops.aten


def _zero(like: Tensor) -> Tensor:
    return aten.scalar_tensor(0, dtype=like.dtype)


def relu(x: Tensor) -> Tensor:
    """Keeps -0, as eager does; torch-mlir makes it 0."""
    zero = _zero(x)
    return torch.where(x < zero, zero, x)


def trunc(x: Tensor) -> Tensor:
    """Keeps the sign of what becomes 0."""
    return torch.where(x < _zero(x), torch.ceil(x), torch.floor(x))


def neg(x: Tensor) -> Tensor:
    """torch-mlir negates integers through floats."""
    return NotImplemented if x.is_floating_point() else _zero(x) - x


def to_copy(x: Tensor, *, dtype: torch.dtype | None = None, **layout: object) -> Tensor:
    """From f64 to halves by way of f32, as eager converts; the processor has no instruction, and
    what LLVM calls instead is not linked."""
    if x.dtype is not torch.float64 or dtype not in HALVES:
        return NotImplemented
    single = aten._to_copy.default(x, dtype=torch.float32)
    return aten._to_copy.default(single, dtype=dtype, **layout)


def isnan(x: Tensor) -> Tensor:
    return x != x


def var_mean(
    x: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    """Two passes, in the tensor's type; torch-mlir computes in f64."""
    dims = (dim or list(range(x.dim()))) if x.dim() else []
    count = math.prod(x.shape[d] for d in dims)
    mean = aten.mean.dim(x, dims, True)
    distance = x - mean
    degrees = max(count - (1 if correction is None else correction), 0)
    variance = aten.sum.dim_IntList(distance * distance, dims, keepdim) / degrees
    return variance, mean if keepdim else aten.squeeze.dims(mean, dims)


def var(
    x: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Tensor:
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def split(x: Tensor, size: int, dim: int = 0) -> list[Tensor]:
    extent = x.shape[dim]
    return [
        aten.slice.Tensor(x, dim, low, min(low + size, extent)) for low in range(0, extent, size)
    ]


def split_with_sizes(x: Tensor, sizes: list[int], dim: int = 0) -> list[Tensor]:
    lows = itertools.accumulate(sizes, initial=0)
    return [aten.slice.Tensor(x, dim, low, low + size) for low, size in zip(lows, sizes)]


def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return [aten.select.int(x, dim, index) for index in range(x.shape[dim])]


def sgn(x: Tensor) -> Tensor:
    """As the gradient of abs spells it."""
    return NotImplemented if x.is_complex() else aten.sign.default(x)


def hardtanh_backward(gradient: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    """0 where x is NaN, as in eager; torch's decomposition passes the gradient."""
    inside = (x > low) & (x < high)
    return torch.where(inside, gradient, _zero(gradient))


def hardswish_backward(gradient: Tensor, x: Tensor) -> Tensor:
    """NaN where x is NaN, as in eager; torch's decomposition passes the gradient."""
    slope = torch.where(x <= -3, _zero(gradient), gradient * (x / 3 + 0.5))
    return torch.where(x >= 3, gradient, slope)


def pow_scalar(x: Tensor, exponent: float) -> Tensor:
    """The exponents that eager treats specially; others are rounded to the tensor's type. Of
    float16 eager takes any power in f32."""
    if not x.is_floating_point():
        return NotImplemented
    if x.dtype is torch.bfloat16:
        return pow_scalar(x.float(), nearest(exponent, x.dtype)).to(x.dtype)
    if x.dtype is torch.float16:
        wide = x.float()
        power = aten.scalar_tensor(exponent, dtype=wide.dtype)
        return aten.pow.Tensor_Tensor(wide, power).to(x.dtype)
    special = {
        0.5: torch.sqrt,
        1: lambda x: x * 1,
        2: lambda x: x * x,
        3: lambda x: x * x * x,
        -0.5: torch.rsqrt,
        -1: lambda x: 1 / x,
        -2: lambda x: 1 / (x * x),
    }
    if exponent in special:
        return special[exponent](x)
    return aten.pow.Tensor_Tensor(x, aten.scalar_tensor(exponent, dtype=x.dtype))


def expm1(x: Tensor) -> Tensor:
    """2t / (1 - t) with t = tanh(x / 2) near 0, where exp(x) - 1, which torch-mlir computes, has
    no digits left."""
    t = aten.tanh.default(x * 0.5)
    return torch.where(torch.abs(x) < 1, t * 2 / (1 - t), torch.exp(x) - 1)


def log1p(x: Tensor) -> Tensor:
    """log(u) * x / (u - 1) takes back the rounding of u = 1 + x, which LLVM's lowering keeps. The
    vectors of f32 are computed by a pass of ours."""
    if x.dtype is not torch.float64:
        return NotImplemented
    u = x + 1
    corrected = torch.log(u) * (x / (u - 1))
    return torch.where(u == 1, x, torch.where(u == math.inf, u, corrected))


def logical_not(x: Tensor) -> Tensor:
    return NotImplemented if x.dtype is torch.bool else aten.eq.Tensor(x, _zero(x))


def logical(name: str) -> Callable:
    """Of numbers: whether they are not 0."""
    overload = getattr(aten, name).default

    def call(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype is torch.bool and y.dtype is torch.bool:
            return NotImplemented
        return overload(aten.ne.Tensor(x, _zero(x)), aten.ne.Tensor(y, _zero(y)))

    return call


def native_group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    pixels: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """On one view of the image in which groups are a dimension of their own."""
    grouped = aten.reshape.default(x, [batch, groups, channels // groups, *x.shape[2:]])
    dims = list(range(2, grouped.dim()))
    variance, mean = aten.var_mean.correction(grouped, dims, correction=0, keepdim=True)
    deviation = aten.rsqrt.default(variance + eps)
    result = (grouped - mean) * deviation
    per_channel = [1, groups, channels // groups] + [1] * (grouped.dim() - 3)
    if weight is not None:
        result = result * aten.reshape.default(weight, per_channel)
    if bias is not None:
        result = result + aten.reshape.default(bias, per_channel)
    statistics = (aten.squeeze.dims(value, dims) for value in (mean, deviation))
    return aten.reshape.default(result, list(x.shape)), *statistics


def batch_norm_functional(x, weight, bias, mean, var, training, momentum, eps):
    """Statistics of the batch by torch's decomposition, running ones as the NPU computes."""
    own = aten._native_batch_norm_legit_functional.default
    table = get_decompositions([own]) if training else NPU_DECOMPOSITIONS
    return table[own](x, weight, bias, mean, var, training, momentum, eps)


def _for_floats(decompose: Callable) -> Callable:
    """Regions compute on floats: their decompositions would turn the 0.5 in `integers * 0.5` into
    0."""

    def decompose_floats(*args, **kwargs):
        tensors = [a for a in args if isinstance(a, Tensor)]
        if not tensors or not all(tensor.is_floating_point() for tensor in tensors):
            return NotImplemented
        return decompose(*args, **kwargs)

    return decompose_floats


_TORCH = [
    aten.threshold_backward, aten.silu_backward, aten.gelu_backward, aten.sigmoid_backward,
    aten.tanh_backward, aten.hardsigmoid_backward, aten.softplus_backward, aten.mish_backward,
    aten.leaky_relu_backward, aten.elu_backward, aten._softmax, aten._log_softmax,
    aten._softmax_backward_data, aten._log_softmax_backward_data, aten.native_layer_norm,
    aten.native_layer_norm_backward, aten.native_group_norm_backward,
    aten.native_batch_norm_backward, aten.addcmul, aten.addcdiv, aten.lerp, aten.square,
    aten.mse_loss, aten.mse_loss_backward, aten.log_sigmoid_forward, aten.log_sigmoid_backward,
    aten.glu, aten.glu_backward, aten.std, aten.std_mean, aten.logsumexp,
    aten.binary_cross_entropy_with_logits, aten.smooth_l1_loss, aten.huber_loss,
]  # fmt: skip
_TORCH_MOVES = [
    aten.zeros_like, aten.ones_like, aten.masked_fill, aten.stack, aten.new_zeros, aten.new_ones,
    aten.new_full, aten.select_backward, aten.slice_backward, aten.tril, aten.triu,
]  # fmt: skip

_AS_ON_NPU = {
    overload: _for_floats(decompose) for overload, decompose in NPU_DECOMPOSITIONS.items()
}
_ARITHMETIC: dict[torch._ops.OpOverload, Callable] = {
    **_AS_ON_NPU,
    **get_decompositions(_TORCH),
    aten.relu.default: relu,
    aten.maximum.default: maximum,
    aten.minimum.default: minimum,
    aten.trunc.default: trunc,
    aten.sgn.default: sgn,
    aten.hardtanh_backward.default: hardtanh_backward,
    aten.hardswish_backward.default: hardswish_backward,
    aten.isnan.default: isnan,
    aten.var_mean.correction: var_mean,
    aten.var.correction: var,
    aten.native_group_norm.default: native_group_norm,
    aten._native_batch_norm_legit_functional.default: batch_norm_functional,
    aten.expm1.default: expm1,
    aten.log1p.default: log1p,
    aten.logical_not.default: logical_not,
    aten.logical_and.default: logical("logical_and"),
    aten.logical_or.default: logical("logical_or"),
    aten.logical_xor.default: logical("logical_xor"),
}
# respellings for the NPU that only move elements
_NPU_MOVES = {
    *("view", "_unsafe_view", "squeeze", "unbind", "stack", "roll", "copy", "index"),
    *("_unsafe_index", "index_select", "slice_scatter", "select_scatter", "pixel_shuffle"),
    *("pixel_unshuffle", "im2col", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
    *("replication_pad1d", "replication_pad2d", "replication_pad3d"),
}

# what treats halves by itself, or only moves them
_OTHERS: dict[torch._ops.OpOverload, Callable] = {
    **{o: call for o, call in _AS_ON_NPU.items() if o._opname in _NPU_MOVES},
    **get_decompositions(_TORCH_MOVES),
    aten.split.Tensor: split,
    aten.split_with_sizes.default: split_with_sizes,
    aten.unbind.int: unbind,
    aten.pow.Tensor_Scalar: pow_scalar,
    aten._to_copy.default: to_copy,
    aten.neg.default: neg,
}
# what changes nothing but the sign bit, of halves too
_SIGNS = {aten.neg.default, aten.abs.default}

HOST_DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable] = _OTHERS | {
    overload: in_single_precision(overload, _ARITHMETIC.get(overload))
    for overload in (_ARITHMETIC.keys() | ARITHMETIC) - _OTHERS.keys() - _SIGNS
}


_AT_POSITIONS = frozenset(
    {
        *(aten.index.Tensor, aten._unsafe_index.Tensor, aten.index_select.default),
        *(aten.index_put.default, aten._unsafe_index_put.default),
    }
)


def explain_respelling(node: fx.Node) -> str | None:
    """What the NPU's rule has against a call that is respelled as for the NPU: such respellings, of
    calls of floats and at positions, are right only where the rule allows the call."""
    shared = _AS_ON_NPU.get(node.target)
    rule = find_rule(node)
    own = _OTHERS.get(node.target) or _ARITHMETIC.get(node.target)
    if rule is None or shared is None or own is not shared:
        return None
    values = [operand.meta.get("val") for operand in node.all_input_nodes]
    static = all(map(_has_static_elements, values))
    if node.target in _AT_POSITIONS:
        return rule(node) if static else "an operand has no dimensions, or none of known sizes"
    floats = all(isinstance(v, Tensor) and v.is_floating_point() for v in values)
    return rule(node) if floats and static else None


def _has_static_elements(value: object) -> bool:
    """What rules take for granted: dimensions of known sizes that are not 0."""
    shape = getattr(value, "shape", ())
    return len(shape) > 0 and all(isinstance(size, int) and size for size in shape)
