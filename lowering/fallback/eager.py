"""Host parts in eager PyTorch: the part's own graph, called as it is."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.fallback.result_promises import as_promised, promises
from mlir_npu.lowering.plan import Part


class EagerCall:
    """The generated `forward` of a graph; it drops every value after its last use."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        self.graph_module = graph_module
        self._forward, self._promised = graph_module.forward, promises(graph_module)

    def __call__(self, *arguments):
        return as_promised(self._forward(*arguments), self._promised)


def compile_host_eager(part: Part) -> EagerCall:
    return EagerCall(part.graph_module)
