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

from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.support.rules import find_rule

aten = torch.ops.aten


def _zero(like: Tensor) -> Tensor:
    return aten.scalar_tensor(0, dtype=like.dtype)


def relu(x: Tensor) -> Tensor:
    """Keeps -0, as eager does; torch-mlir makes it 0."""
    zero = _zero(x)
    return torch.where(x < zero, zero, x)


def maximum(x: Tensor, y: Tensor) -> Tensor:
    """NaN on either side is the result; torch-mlir loses a NaN in x."""
    return torch.where(x != x, x, torch.where(x > y, x, y))


def minimum(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x != x, x, torch.where(x < y, x, y))


def trunc(x: Tensor) -> Tensor:
    """Keeps the sign of what becomes 0."""
    return torch.where(x < _zero(x), torch.ceil(x), torch.floor(x))


def neg(x: Tensor) -> Tensor:
    """torch-mlir negates integers through floats."""
    return NotImplemented if x.is_floating_point() else _zero(x) - x


def isnan(x: Tensor) -> Tensor:
    return x != x


def eq(x: Tensor, y: Tensor) -> Tensor:
    """torch-mlir takes x == x for true, NaN included."""
    return (
        aten.logical_not.default(aten.ne.Tensor(x, y)) if x.is_floating_point() else NotImplemented
    )


def var_mean(
    x: Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Tensor, Tensor]:
    """Two passes, in the tensor's type; torch-mlir computes in f64."""
    dims = dim or list(range(x.dim()))
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


def compare(name: str) -> Callable:
    """Floats against a number rounded to their type; torch-mlir compares with the unrounded one."""
    with_tensor = getattr(aten, name).Tensor

    def comparison(x: Tensor, other: float) -> Tensor:
        if not x.is_floating_point():
            return NotImplemented
        return with_tensor(x, aten.scalar_tensor(other, dtype=x.dtype))

    return comparison


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


def hardtanh_backward(gradient: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    """0 where x is NaN, as in eager; torch's decomposition passes the gradient."""
    inside = (x > low) & (x < high)
    return torch.where(inside, gradient, _zero(gradient))


def hardswish_backward(gradient: Tensor, x: Tensor) -> Tensor:
    """NaN where x is NaN, as in eager; torch's decomposition passes the gradient."""
    slope = torch.where(x <= -3, _zero(gradient), gradient * (x / 3 + 0.5))
    return torch.where(x >= 3, gradient, slope)


def pow_scalar(x: Tensor, exponent: float) -> Tensor:
    """The exponents that eager treats specially; others stay and are refused."""
    if not x.is_floating_point():
        return NotImplemented
    special = {
        0.5: torch.sqrt,
        1: lambda x: x * 1,
        2: lambda x: x * x,
        3: lambda x: x * x * x,
        -0.5: torch.rsqrt,
        -1: lambda x: 1 / x,
        -2: lambda x: 1 / (x * x),
    }
    return special[exponent](x) if exponent in special else NotImplemented


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
    aten.tanh_backward, aten.hardsigmoid_backward,
    aten.leaky_relu_backward, aten.elu_backward, aten._softmax, aten._log_softmax,
    aten._softmax_backward_data, aten._log_softmax_backward_data, aten.native_layer_norm,
    aten.native_layer_norm_backward, aten.addcmul, aten.addcdiv, aten.lerp, aten.square,
    aten.zeros_like, aten.ones_like, aten.masked_fill, aten.mse_loss, aten.mse_loss_backward,
    aten.stack, aten.new_zeros, aten.new_ones, aten.new_full, aten.select_backward, aten.tril,
    aten.triu,
]  # fmt: skip

_AS_ON_NPU = {
    overload: _for_floats(decompose) for overload, decompose in NPU_DECOMPOSITIONS.items()
}

HOST_DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable] = {
    **get_decompositions(_TORCH),
    **_AS_ON_NPU,
    aten.relu.default: relu,
    aten.maximum.default: maximum,
    aten.minimum.default: minimum,
    aten.trunc.default: trunc,
    aten.neg.default: neg,
    aten.hardtanh_backward.default: hardtanh_backward,
    aten.hardswish_backward.default: hardswish_backward,
    aten.isnan.default: isnan,
    aten.eq.Tensor: eq,
    aten.var_mean.correction: var_mean,
    aten.var.correction: var,
    aten.split.Tensor: split,
    aten.split_with_sizes.default: split_with_sizes,
    aten.unbind.int: unbind,
    **{getattr(aten, name).Scalar: compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    aten.pow.Tensor_Scalar: pow_scalar,
}


def explain_respelling(node: fx.Node) -> str | None:
    """What the NPU's rule has against a call that is respelled as for the NPU, whatever its element
    type: such respellings are right only where the rule allows the call."""
    shared = _AS_ON_NPU.get(node.target)
    rule = find_rule(node)
    if rule is None or shared is None or HOST_DECOMPOSITIONS[node.target] is not shared:
        return None
    return rule(node) if all(map(_is_static, node.all_input_nodes)) else None


def _is_static(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and all(isinstance(size, int) for size in value.shape)
