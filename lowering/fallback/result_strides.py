"""Results of a host part have the strides that tracing promised to whoever reads them.

Kernels of eager PyTorch sometimes choose a layout that their meta function does not know (the
backward of a convolution on channels_last), and compiled code further on was built for the one that
was promised.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

Strides = tuple[int, ...] | None


def promised_strides(graph_module: fx.GraphModule) -> tuple[Strides, ...]:
    """Strides of each result; None where they are symbolic or the result is no strided tensor."""
    return tuple(_static_strides(node) for node in graph_module.graph.output_node().args[0])


def with_promised_strides(results: Sequence[object], promised: Sequence[Strides]) -> tuple:
    """The results, those with other strides copied."""
    return tuple(
        result if strides is None or result.stride() == strides else _restrided(result, strides)
        for result, strides in zip(results, promised, strict=True)
    )


def _static_strides(node: object) -> Strides:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    shape, strides = value.shape, value.stride()
    # asking a symbolic number anything would guard on it, which data-dependent ones refuse
    if not all(isinstance(number, int) for number in (*shape, *strides)):
        return None
    return None if 0 in shape else strides


def _restrided(result: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    if all(size == 1 or a == b for size, a, b in zip(result.shape, result.stride(), strides)):
        return result.as_strided(result.shape, strides)  # strides of unit dims reach no memory
    copy = torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)
    return copy.copy_(result)
