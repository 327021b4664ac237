"""Host parts in eager PyTorch: the part's own graph, called as it is."""

from __future__ import annotations

from collections.abc import Callable

from mlir_npu.lowering.plan import Part


def compile_host_eager(part: Part) -> Callable:
    """The generated `forward` of the part; it drops every value after its last use."""
    return part.graph_module.forward
