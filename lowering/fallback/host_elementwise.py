"""How elementwise ATen calls of host parts are spelled before torch-mlir sees them: calls that it
lowers to other results than eager's. NotImplemented is for operands that it lowers as they are."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from mlir_npu.lowering.half_precision import HALVES, nearest

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
