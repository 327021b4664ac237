"""Results of a host part are what tracing promised to whoever reads them.

Kernels of eager PyTorch sometimes choose a layout that their meta function does not know (the
backward of a convolution on channels_last), or return bfloat16 where it says float32 (the backward
of a group norm with weights of float32); compiled code further on was built for what was promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx


@dataclass(frozen=True)
class Promise:
    """strides: None where they are symbolic."""

    dtype: torch.dtype
    strides: tuple[int, ...] | None


def promises(graph_module: fx.GraphModule) -> tuple[Promise | None, ...]:
    """Of each result; None where the result is no strided tensor."""
    return tuple(_promise(node) for node in graph_module.graph.output_node().args[0])


def as_promised(results: Sequence[object], promised: Sequence[Promise | None]) -> tuple:
    """The results; those of a narrower type or with other strides are copied."""
    return tuple(
        result if promise is None else _conform(result, promise)
        for result, promise in zip(results, promised, strict=True)
    )


def _promise(node: object) -> Promise | None:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    shape, strides = value.shape, value.stride()
    # asking a symbolic number anything would guard on it, which data-dependent ones refuse
    static = all(isinstance(number, int) for number in (*shape, *strides)) and 0 not in shape
    return Promise(value.dtype, strides if static else None)


def _conform(result: torch.Tensor, promise: Promise) -> torch.Tensor:
    if result.dtype is not promise.dtype and _is_narrower(result.dtype, promise.dtype):
        result = result.to(promise.dtype)
    if promise.strides is None or result.stride() == promise.strides:
        return result
    return _restrided(result, promise.strides)


def _is_narrower(dtype: torch.dtype, promised: torch.dtype) -> bool:
    """Statistics that are wider than promised stay: the kernels that read them want them so."""
    return promised.is_floating_point and torch.promote_types(dtype, promised) is promised


def _restrided(result: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    if all(size == 1 or a == b for size, a, b in zip(result.shape, result.stride(), strides)):
        return result.as_strided(result.shape, strides)  # strides of unit dims reach no memory
    copy = torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)
    return copy.copy_(result)
