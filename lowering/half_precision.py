"""bf16 and f16 as eager computes with them: in f32, rounded once, when an ATen call is done.

Eager's kernels convert what they load, compute in f32 (sums, too) and round what they store. So a
call on halves becomes the conversion of its operands, the call itself on f32, and the conversion of
its results to the types that eager gives them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

aten = torch.ops.aten

# Numbers among the arguments become halves first, where other calls take them as they are.
_ROUNDS_NUMBERS = frozenset(
    {aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar}
    | {aten.rsub.Tensor, aten.rsub.Scalar}
    | {getattr(aten, name).Scalar for name in ("eq", "ne", "lt", "le", "gt", "ge")}
)


def _hardtanh_backward(gradient: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    """Eager lets the gradient of halves pass where x is NaN, and that of f32 not."""
    low, high, zero = (aten.scalar_tensor(number, dtype=x.dtype) for number in (low, high, 0))
    outside = aten.logical_or(aten.le.Tensor(x, low), aten.ge.Tensor(x, high))
    return aten.where.self(outside, zero, gradient)


# Calls whose f32 form differs in more than precision.
_OWN = {aten.hardtanh_backward.default: _hardtanh_backward}
HALVES = frozenset({torch.float16, torch.bfloat16})


def in_single_precision(overload: torch._ops.OpOverload, decompose: Callable | None) -> Callable:
    """A decomposition of `overload` for halves; `decompose` is that for other types, if any."""

    def compute(*args, **kwargs):
        if not any(_is_half(a) for a in (*args, *kwargs.values())):
            return NotImplemented if decompose is None else decompose(*args, **kwargs)
        expected = _result_types(overload, args, kwargs)
        if overload in _ROUNDS_NUMBERS and (dtype := _common_half(args)) is not None:
            args = [nearest(a, dtype) if isinstance(a, float) else a for a in args]
            if isinstance(alpha := kwargs.get("alpha"), float):
                kwargs = kwargs | {"alpha": nearest(alpha, dtype)}
        call = _OWN.get(overload, overload)
        results = call(*map(_widened, args), **tree_map(_widened, kwargs))
        if isinstance(results, Tensor):
            return _rounded(results, expected)
        return tuple(map(_rounded, results, expected))

    return compute


def _is_half(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_half, value))
    return isinstance(value, Tensor) and value.dtype in HALVES


def _common_half(args: tuple) -> torch.dtype | None:
    """The type of the tensors if they are halves of one kind."""
    dtypes = {value.dtype for value in args if isinstance(value, Tensor)}
    return dtypes.pop() if len(dtypes) == 1 else None


def nearest(number: float, dtype: torch.dtype) -> float:
    """The number rounded to `dtype`."""
    with _disable_current_modes():
        return torch.tensor(number, dtype=dtype).item()


def _widened(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_widened(v) for v in value]
    if isinstance(value, torch.dtype):
        return torch.float32 if value in HALVES else value
    if isinstance(value, Tensor) and value.dtype in HALVES:
        return aten._to_copy.default(value, dtype=torch.float32)
    return value


def _result_types(overload: torch._ops.OpOverload, args: tuple, kwargs: dict):
    """Element type of every result, as the call itself says."""

    def described(value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")

    with _disable_current_modes():
        results = overload(*tree_map(described, args), **tree_map(described, kwargs))
        return tree_map(lambda result: getattr(result, "dtype", None), results)


def _rounded(result: Tensor | None, dtype: torch.dtype | None) -> Tensor | None:
    """Gradients that nobody wants are None."""
    if result is None or result.dtype is dtype:
        return result
    return aten._to_copy.default(result, dtype=dtype)
