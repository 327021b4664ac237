"""Compiled against eager: values, dtypes, shapes, strides, aliasing, gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
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
    for (name, ours), other in zip(model.named_parameters(), theirs.parameters()):
        assert (ours.grad is None) == (other.grad is None), name
        if other.grad is not None:
            torch.testing.assert_close(
                ours.grad, other.grad, rtol=1e-3, atol=1e-4, msg=lambda m, name=name: f"{name}: {m}"
            )
    for ours, other in zip(model.buffers(), theirs.buffers()):
        torch.testing.assert_close(ours, other, rtol=RELATIVE, atol=ABSOLUTE)
    for ours, other in zip(inputs, expected_inputs):
        if isinstance(other, torch.Tensor) and other.grad is not None:
            torch.testing.assert_close(ours.grad, other.grad, rtol=1e-3, atol=1e-4)


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
