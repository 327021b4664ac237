"""Comparisons, and what is chosen by them, with NaN as in eager."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from mlir_npu.lowering.decomposition_table import aten, constant, decomposes, select


def _with_number(name: str) -> Callable:
    """Against a number rounded to the tensor's type; torch-mlir compares with the unrounded one."""
    with_tensor = getattr(aten, name).Tensor

    def comparison(x: Tensor, other: float) -> Tensor:
        return with_tensor(x, constant(other, x))

    return comparison


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    decomposes(getattr(aten, _name).Scalar)(_with_number(_name))


@decomposes(aten.eq.Tensor)
def eq(x: Tensor, y: Tensor) -> Tensor:
    """torch-mlir takes x == x for true, NaN included."""
    return aten.logical_not.default(aten.ne.Tensor(x, y))


@decomposes(aten.masked_fill.Scalar)
def masked_fill(x: Tensor, mask: Tensor, value: float) -> Tensor:
    return select(mask, constant(value, x), x)


@decomposes(aten.maximum.default)
def maximum(x: Tensor, y: Tensor) -> Tensor:
    """NaN on either side is the result; torch-mlir loses a NaN in x."""
    return select(aten.ne.Tensor(x, x), x, select(aten.gt.Tensor(x, y), x, y))


@decomposes(aten.minimum.default)
def minimum(x: Tensor, y: Tensor) -> Tensor:
    return select(aten.ne.Tensor(x, x), x, select(aten.lt.Tensor(x, y), x, y))


@decomposes(aten.clamp.Tensor)
def clamp(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    x = x if min is None else maximum(x, min)
    return x if max is None else minimum(x, max)


@decomposes(aten.clamp_min.Tensor)
def clamp_min(x: Tensor, min: Tensor) -> Tensor:
    return maximum(x, min)


@decomposes(aten.clamp_max.Tensor)
def clamp_max(x: Tensor, max: Tensor) -> Tensor:
    return minimum(x, max)


@decomposes(aten.sgn.default, aten.sign.default)
def sign(x: Tensor) -> Tensor:
    """0 for NaN, as in eager."""
    zero, one = constant(0, x), constant(1, x)
    return select(x > zero, one, select(x < zero, constant(-1, x), zero))
