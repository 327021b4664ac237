"""Two runs of one sample: values, element types, shapes, strides, sharing of memory, gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

# relative and absolute; rounding differs where sums are made in another order
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (1e-4, 1e-5),
    torch.complex64: (1e-4, 1e-5),
    torch.float16: (2e-3, 1e-4),
    torch.bfloat16: (1.6e-2, 1e-4),
}


@dataclass(frozen=True)
class Run:
    """What a call returned, its inputs after it, and the gradients of those."""

    result: Any
    inputs: tuple[torch.Tensor, ...]
    gradients: tuple[torch.Tensor | None, ...] = ()


def difference(actual: Run, expected: Run, values: bool = True, strides: bool = True) -> str | None:
    """The first difference in words, None if there is none. values: compare elements; strides:
    compare those of results."""
    ours, our_spec = pytree.tree_flatten(actual.result)
    theirs, their_spec = pytree.tree_flatten(expected.result)
    if our_spec != their_spec:
        return f"result is {our_spec}, not {their_spec}"
    for index, (a, e) in enumerate(zip(ours, theirs)):
        if found := _leaf(a, e, values, strides):
            return f"result {index}: {found}"
    for index, (a, e) in enumerate(zip(actual.inputs, expected.inputs)):
        if found := _tensor(a, e, values):
            return f"input {index} afterwards: {found}"
    for index, (a, e) in enumerate(zip(actual.gradients, expected.gradients)):
        if found := _leaf(a, e, values):
            return f"gradient {index}: {found}"
    return _sharing((*actual.inputs, *ours), (*expected.inputs, *theirs))


def has_layout_of(actual: Run, traced: Any) -> bool:
    """Whether results have the strides of the fake tensors that tracing made for them."""
    pairs = zip(pytree.tree_leaves(actual.result), pytree.tree_leaves(traced), strict=True)
    return all(
        _steps(ours) == _steps(fake) for ours, fake in pairs if isinstance(fake, torch.Tensor)
    )


def as_exact(actual: Run, eager: Run, exact: Run) -> bool:
    """Whether results and gradients are about as close to those of a run in float64 as eager's: the
    last resort where cancellation makes rounding large."""
    runs = [pytree.tree_leaves((run.result, run.gradients)) for run in (actual, eager, exact)]
    return all(
        _about_as_close(*leaves)
        for leaves in zip(*runs, strict=True)
        if isinstance(leaves[0], torch.Tensor)
    )


def _about_as_close(actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> bool:
    actual, eager, exact = actual.detach(), eager.detach(), exact.detach()
    if eager.dtype not in TOLERANCES or eager.layout is not torch.strided:
        return _values(actual, eager) is None
    rounded = eager.isfinite() & exact.isfinite()
    if _values(actual[~rounded], eager[~rounded]) is not None:
        return False
    ours, theirs = ((run - exact)[rounded].abs() for run in (actual, eager))
    _, absolute = TOLERANCES[eager.dtype]
    return not len(ours) or bool(ours.max() <= 4 * theirs.max() + absolute)


def _leaf(actual: Any, expected: Any, values: bool, strides: bool = True) -> str | None:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return _tensor(actual, expected, values, strides)
    if type(actual) is not type(expected):
        return f"is a {type(actual).__name__}, not a {type(expected).__name__}"
    same = actual == expected or actual != actual and expected != expected
    return None if same or not values else f"is {actual}, not {expected}"


def _tensor(
    actual: torch.Tensor, expected: torch.Tensor, values: bool, strides: bool = True
) -> str | None:
    for what in ("dtype", "shape", "layout", "requires_grad"):
        ours, theirs = getattr(actual, what), getattr(expected, what)
        if ours != theirs:
            return f"{what} is {ours}, not {theirs}"
    strides = strides and expected.layout is torch.strided
    if strides and _steps(actual) != _steps(expected):
        return f"strides are {actual.stride()}, not {expected.stride()} (shape {expected.shape})"
    return _values(actual.detach(), expected.detach()) if values else None


def _steps(tensor: torch.Tensor) -> list[int]:
    """Strides that reach memory: those of dimensions with more than one element."""
    if not tensor.numel():
        return []
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1]


def _values(actual: torch.Tensor, expected: torch.Tensor) -> str | None:
    relative, absolute = TOLERANCES.get(expected.dtype, (0, 0))
    try:
        torch.testing.assert_close(
            actual, expected, rtol=relative, atol=absolute, equal_nan=True, check_stride=False
        )
    except AssertionError as error:
        return "values differ: " + " ".join(str(error).split())[:300]
    return None


def _sharing(actual: Sequence[Any], expected: Sequence[Any]) -> str | None:
    ours, theirs = _memory(actual), _memory(expected)
    if ours != theirs:
        return f"inputs and results share memory as {ours}, not as {theirs}"
    ours, theirs = _objects(actual), _objects(expected)
    if ours != theirs:
        return f"inputs and results are the same objects as {ours}, not as {theirs}"
    return None


def _memory(leaves: Sequence[Any]) -> list[int]:
    """Number of the first leaf in the same memory, for each leaf."""
    keys = [
        leaf.untyped_storage()._cdata
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
        else None
        for leaf in leaves
    ]
    return [keys.index(key) if key is not None else index for index, key in enumerate(keys)]


def _objects(leaves: Sequence[Any]) -> list[int]:
    keys = [
        id(leaf) if isinstance(leaf, torch.Tensor) else ("leaf", i) for i, leaf in enumerate(leaves)
    ]
    return [keys.index(key) for key in keys]
