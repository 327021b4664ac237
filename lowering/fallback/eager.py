"""Host parts in eager PyTorch: the part's own graph, called as it is."""

from __future__ import annotations

from collections.abc import Callable

from mlir_npu.lowering.fallback.result_strides import promised_strides, with_promised_strides
from mlir_npu.lowering.plan import Part


def compile_host_eager(part: Part) -> Callable:
    """The generated `forward` of the part; it drops every value after its last use."""
    forward, promised = part.graph_module.forward, promised_strides(part.graph_module)

    def call(*arguments):
        return with_promised_strides(forward(*arguments), promised)

    return call
