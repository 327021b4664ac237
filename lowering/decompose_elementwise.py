"""Arithmetic with Python numbers, which torch-mlir would round from f64 at run time."""

from __future__ import annotations

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, constant, decomposes

Number = int | float


@decomposes(aten.add.Tensor, aten.add.Scalar)
def add(x: Tensor, other: Tensor | Number, alpha: Number = 1) -> Tensor:
    if isinstance(other, Tensor):
        return NotImplemented if alpha == 1 else aten.add.Tensor(x, other * constant(alpha, x))
    return aten.add.Tensor(x, constant(other * alpha, x))


@decomposes(aten.sub.Tensor, aten.sub.Scalar)
def sub(x: Tensor, other: Tensor | Number, alpha: Number = 1) -> Tensor:
    if isinstance(other, Tensor):
        return NotImplemented if alpha == 1 else aten.sub.Tensor(x, other * constant(alpha, x))
    return aten.sub.Tensor(x, constant(other * alpha, x))


@decomposes(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(x: Tensor, other: Tensor | Number, alpha: Number = 1) -> Tensor:
    scaled = x if alpha == 1 else x * constant(alpha, x)
    return aten.sub.Tensor(other if isinstance(other, Tensor) else constant(other, x), scaled)


@decomposes(aten.mul.Tensor, aten.mul.Scalar)
def mul(x: Tensor, other: Tensor | Number) -> Tensor:
    return NotImplemented if isinstance(other, Tensor) else aten.mul.Tensor(x, constant(other, x))


@decomposes(aten.div.Tensor, aten.div.Scalar)
def div(x: Tensor, other: Tensor | Number) -> Tensor:
    return NotImplemented if isinstance(other, Tensor) else aten.div.Tensor(x, constant(other, x))


@decomposes(aten.pow.Tensor_Scalar)
def power(x: Tensor, exponent: Number) -> Tensor:
    """As eager computes these exponents (a support rule lets no others through)."""
    if exponent in (-0.5, 0.5):
        return aten.rsqrt(x) if exponent < 0 else aten.sqrt(x)
    if exponent == 1:
        return aten.mul.Tensor(x, constant(1, x))
    product = x
    for _ in range(abs(int(exponent)) - 1):
        product = product * x
    return product if exponent > 0 else reciprocal(product)


@decomposes(aten.reciprocal.default)
def reciprocal(x: Tensor) -> Tensor:
    """torch-mlir asserts that no element is 0."""
    return aten.div.Tensor(constant(1, x), x)


@decomposes(aten.addcmul.default)
def addcmul(x: Tensor, first: Tensor, second: Tensor, *, value: Number = 1) -> Tensor:
    return x + first * value * second


@decomposes(aten.addcdiv.default)
def addcdiv(x: Tensor, first: Tensor, second: Tensor, *, value: Number = 1) -> Tensor:
    return x + first * value / second


@decomposes(aten.lerp.Scalar)
def lerp(x: Tensor, end: Tensor, weight: Number) -> Tensor:
    """From the nearer end, as eager computes it."""
    way = end - x
    return x + way * weight if abs(weight) < 0.5 else end - way * (1 - weight)
