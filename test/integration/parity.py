"""Compiled against eager: values, dtypes, shapes, strides, aliasing, gradients."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

RELATIVE, ABSOLUTE = 1e-4, 1e-5


def compile_model(model: Callable, **options: Any) -> Callable:
    return torch.compile(model, backend="mlir_npu", options=options)


def assert_same(actual: Any, expected: Any) -> None:
    """Values within tolerance, NaN equal to NaN; dtype, shape and strides exactly."""
    actual_leaves, actual_spec = pytree.tree_flatten(actual)
    expected_leaves, expected_spec = pytree.tree_flatten(expected)
    assert actual_spec == expected_spec
    for ours, theirs in zip(actual_leaves, expected_leaves):
        if not isinstance(theirs, torch.Tensor):
            assert ours == theirs
            continue
        assert ours.dtype == theirs.dtype
        assert ours.stride() == theirs.stride()
        torch.testing.assert_close(ours, theirs, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)


def assert_gradients_close(ours: Any, theirs: Any) -> None:
    """Gradients of the same shapes, close in the scale of each tensor.

    A gradient of a weight adds a term per pixel and image. Where the terms cancel, rounding leaves
    as much as in the largest sums.
    """
    pairs = zip(pytree.tree_leaves(ours), pytree.tree_leaves(theirs), strict=True)
    for index, (mine, other) in enumerate(pairs):
        assert (mine is None) == (other is None), index
        if other is None:
            continue
        largest = other.abs().max().item() if other.numel() else 0.0
        absolute = max(1e-4, 1e-5 * largest) if math.isfinite(largest) else 1e-4
        note = f"gradient {index}: {{}}".format
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=absolute, msg=note)


def check_inference(model: Callable, *inputs: Any, options: Mapping[str, Any] | None = None) -> Any:
    """Compare one call under no_grad, and what it does to its inputs. Returns our result."""
    ours, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    compiled = compile_model(model, **(options or {}))
    with torch.no_grad():
        expected = model(*theirs)
        actual = compiled(*ours)
    assert_same(actual, expected)
    assert_same(ours, theirs)
    return actual


def check_training(
    model: torch.nn.Module, *inputs: Any, options: Mapping[str, Any] | None = None
) -> None:
    """Compare one step: outputs, gradients of parameters and inputs, buffers."""
    theirs, expected_inputs = copy.deepcopy(model), copy.deepcopy(inputs)
    check_step(compile_model(model, **(options or {})), model, theirs, inputs, expected_inputs)


def check_step(
    compiled: Callable,
    model: torch.nn.Module,
    theirs: torch.nn.Module,
    inputs: tuple,
    expected_inputs: tuple,
) -> None:
    """compiled: what was made of `model`; theirs: a copy, to be called in eager."""
    actual, expected = compiled(*inputs), theirs(*expected_inputs)
    assert_same(_detached(actual), _detached(expected))
    _weighted_sum(actual).backward()
    _weighted_sum(expected).backward()
    assert_gradients_close(_gradients(model.parameters()), _gradients(theirs.parameters()))
    for ours, other in zip(model.buffers(), theirs.buffers()):
        torch.testing.assert_close(ours, other, rtol=RELATIVE, atol=ABSOLUTE)
    assert_gradients_close(_gradients(inputs), _gradients(expected_inputs))


def _gradients(values: Iterable[Any]) -> list[torch.Tensor | None]:
    return [value.grad for value in values if isinstance(value, torch.Tensor)]


def _detached(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, value)


def _weighted_sum(value: Any) -> torch.Tensor:
    """A scalar whose gradient differs for every element, so that mixed-up tangents show."""
    total = torch.zeros(())
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            weights = torch.linspace(0.5, 1.5, max(leaf.numel(), 1))[: leaf.numel()].reshape(
                leaf.shape
            )
            total = total + (leaf * weights).sum()
    return total
