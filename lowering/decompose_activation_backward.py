"""Gradients of activation functions, with NaN and infinities as in eager."""

from __future__ import annotations

import math

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, constant, decomposes, select


@decomposes(aten.threshold_backward.default)
def threshold_backward(grad: Tensor, x: Tensor, threshold: float) -> Tensor:
    return select(x <= constant(threshold, x), constant(0, grad), grad)


@decomposes(aten.hardtanh_backward.default)
def hardtanh_backward(grad: Tensor, x: Tensor, min_val: float, max_val: float) -> Tensor:
    below = select(x < constant(max_val, x), grad, constant(0, grad))
    return select(x > constant(min_val, x), below, constant(0, grad))


@decomposes(aten.leaky_relu_backward.default)
def leaky_relu_backward(
    grad: Tensor, x: Tensor, negative_slope: float, self_is_result: bool
) -> Tensor:
    return select(x > constant(0, x), grad, grad * negative_slope)


@decomposes(aten.hardswish_backward.default)
def hardswish_backward(grad: Tensor, x: Tensor) -> Tensor:
    between = select(x < constant(3, x), grad * (x / 3 + 0.5), grad)
    return select(x <= constant(-3, x), constant(0, grad), between)


@decomposes(aten.hardsigmoid_backward.default)
def hardsigmoid_backward(grad: Tensor, x: Tensor) -> Tensor:
    below = select(x < constant(3, x), grad / 6, constant(0, grad))
    return select(x > constant(-3, x), below, constant(0, grad))


@decomposes(aten.sigmoid_backward.default)
def sigmoid_backward(grad: Tensor, y: Tensor) -> Tensor:
    return grad * (1 - y) * y


@decomposes(aten.tanh_backward.default)
def tanh_backward(grad: Tensor, y: Tensor) -> Tensor:
    return grad * (1 - y * y)


@decomposes(aten.silu_backward.default)
def silu_backward(grad: Tensor, x: Tensor) -> Tensor:
    gate = aten.sigmoid(x)
    return grad * gate * (1 + x * (1 - gate))


@decomposes(aten.gelu_backward.default)
def gelu_backward(grad: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    """The normal distribution and x times its density, or the derivative of their tanh form."""
    if approximate == "none":
        distribution = 0.5 * (1 + aten.erf(x * math.sqrt(0.5)))
        density = aten.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return grad * (distribution + x * density)
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    t = aten.tanh((x + x * x * x * cubic) * scale)
    slope = (1 + x * x * (3 * cubic)) * scale
    return grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


@decomposes(aten.elu_backward.default)
def elu_backward(
    grad: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, x: Tensor
) -> Tensor:
    """x: the result of elu if is_result, else what elu was applied to."""
    bend = alpha * scale
    negative = (
        grad * input_scale * (x + bend)
        if is_result
        else grad * (input_scale * bend) * aten.exp(x * input_scale)
    )
    return select(x <= constant(0, x), negative, grad * scale)


@decomposes(aten.softplus_backward.default)
def softplus_backward(grad: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    z = x * beta
    return select(z > constant(threshold, x), grad, grad * aten.sigmoid(z))


@decomposes(aten.mish_backward.default)
def mish_backward(grad: Tensor, x: Tensor) -> Tensor:
    gate = aten.sigmoid(x)
    t = aten.tanh(aten.relu(x) + aten.log1p(aten.exp(-aten.abs(x))))
    return grad * (t + x * gate * (1 - t * t))


@decomposes(aten._prelu_kernel_backward.default)
def prelu_kernel_backward(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    zero = constant(0, x)
    by_input = select(x > zero, grad, grad * weight)
    return by_input, select(x > zero, zero, grad * x)


@decomposes(aten.glu_backward.default)
def glu_backward(grad: Tensor, x: Tensor, dim: int) -> Tensor:
    half = x.shape[dim] // 2
    gate = aten.sigmoid(aten.slice.Tensor(x, dim, half, 2 * half))
    by_value = grad * gate
    by_gate = by_value * (1 - gate) * aten.slice.Tensor(x, dim, 0, half)
    return aten.cat([by_value, by_gate], dim)


@decomposes(aten.log_sigmoid_backward.default)
def log_sigmoid_backward(grad: Tensor, x: Tensor, power: Tensor) -> Tensor:
    """power: exp(-|x|)."""
    share = power / (1 + power)
    return grad * select(x < constant(0, x), 1 - share, share)


@decomposes(aten.native_dropout_backward.default)
def dropout_backward(grad: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad * aten._to_copy.default(mask, dtype=grad.dtype) * scale
