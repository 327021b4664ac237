"""Activation functions with NaN, infinities and precision as in eager, in f32 throughout."""

from __future__ import annotations

import math

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, constant, decomposes, select


@decomposes(aten.clamp.default)
def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """NaN fails both comparisons and stays. If min > max the result is max, as in eager."""
    if min is not None:
        low = constant(min, x)
        x = select(x < low, low, x)
    if max is not None:
        high = constant(max, x)
        x = select(x > high, high, x)
    return x


@decomposes(aten.clamp_min.default)
def clamp_min(x: Tensor, min: float) -> Tensor:
    return clamp(x, min, None)


@decomposes(aten.clamp_max.default)
def clamp_max(x: Tensor, max: float) -> Tensor:
    return clamp(x, None, max)


@decomposes(aten.hardtanh.default)
def hardtanh(x: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return clamp(x, min_val, max_val)


@decomposes(aten.hardswish.default)
def hardswish(x: Tensor) -> Tensor:
    return x * clamp(x + 3, 0, 6) / 6


@decomposes(aten.hardsigmoid.default)
def hardsigmoid(x: Tensor) -> Tensor:
    return clamp(x + 3, 0, 6) / 6


@decomposes(aten.leaky_relu.default)
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return select(x > constant(0, x), x, x * negative_slope)


@decomposes(aten._prelu_kernel.default)
def prelu_kernel(x: Tensor, weight: Tensor) -> Tensor:
    return select(x > constant(0, x), x, x * weight)


@decomposes(aten.elu.default)
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """expm1(z) as 2t / (1 - t) with t = tanh(z / 2): for z <= 0 it keeps the precision near 0 that
    exp(z) - 1 loses."""
    t = aten.tanh(x * (input_scale / 2))
    negative = t * (2 * alpha * scale) / (1 - t)
    return select(x > constant(0, x), x * scale, negative)


@decomposes(aten.celu.default)
def celu(x: Tensor, alpha: float = 1) -> Tensor:
    return elu(x, alpha, 1, 1 / alpha)


@decomposes(aten.threshold.default)
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    return select(x <= constant(threshold, x), constant(value, x), x)


@decomposes(aten.glu.default)
def glu(x: Tensor, dim: int = -1) -> Tensor:
    half = x.shape[dim] // 2
    gate = aten.slice.Tensor(x, dim, half, 2 * half)
    return aten.slice.Tensor(x, dim, 0, half) * aten.sigmoid(gate)


@decomposes(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(x: Tensor) -> tuple[Tensor, Tensor]:
    """The second result is what the backward takes."""
    zero, power = constant(0, x), aten.exp(-aten.abs(x))
    return select(x > zero, zero, x) - aten.log1p(power), power


@decomposes(aten.softplus.default)
def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    z = x * beta
    return select(z > constant(threshold, x), x, _log1p_exp(z) / beta)


@decomposes(aten.mish.default)
def mish(x: Tensor) -> Tensor:
    return x * aten.tanh(_log1p_exp(x))


def _log1p_exp(x: Tensor) -> Tensor:
    """log(1 + exp(x)) without overflow."""
    return aten.relu(x) + aten.log1p(aten.exp(-aten.abs(x)))


@decomposes(aten.gelu.default)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return x * 0.5 * (1 + aten.erf(x * math.sqrt(0.5)))
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (1 + aten.tanh(inner))
