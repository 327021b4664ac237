"""Host parts through TorchInductor.

AOTAutograd has run already, so a part goes to Inductor's inner compiler and never to `compile_fx`,
which would run it again. Inductor expects graphs in its own decompositions: the part is re-traced
with them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch._dynamo.utils import detect_fake_mode
from torch._guards import TracingContext, tracing
from torch.fx.experimental.proxy_tensor import make_fx

from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering.fallback.result_promises import as_promised, promises
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options


def compile_host_inductor(part: Part, options: Options) -> Callable:
    """Compiled part; raises HostLoweringError if Inductor cannot (a missing C++ compiler, say)."""
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table

    values = [node.meta["val"] for node in part.graph_module.graph.find_nodes(op="placeholder")]
    mode = detect_fake_mode(values)
    try:
        # A context of its own: into that of the whole graph Inductor would write the part's output
        # strides, and from it read which inputs of the whole graph it may overwrite.
        with tracing(TracingContext(mode)):
            traced = _retrace(part.graph_module, values, select_decomp_table(), mode)
            _keep_result_strides(traced)
            compiled = compile_fx_inner(traced, values)
    except Exception as error:  # every failure of Inductor ends here: the part still runs, in eager
        message = (str(error).strip() or "no message").splitlines()[0]
        raise HostLoweringError(f"Inductor: {type(error).__name__}: {message}") from error
    promised = promises(part.graph_module)

    def call(*arguments):
        return as_promised(compiled(list(arguments)), promised)

    return call


def _retrace(graph_module: fx.GraphModule, values: list, table: dict, mode) -> fx.GraphModule:
    if mode is None:
        return make_fx(graph_module, decomposition_table=table, tracing_mode="real")(*values)
    with mode:
        return make_fx(graph_module, decomposition_table=table)(*values)


def _keep_result_strides(graph_module: fx.GraphModule) -> None:
    """Mark every result as one that the user sees, or Inductor is free to choose its layout."""
    output = graph_module.graph.output_node()
    values = [
        node.meta.get("val") if isinstance(node, fx.Node) else None for node in output.args[0]
    ]
    output.meta["user_visible_output_idxs"] = list(range(len(values)))
    output.meta["original_output_strides"] = [
        value.stride() if isinstance(value, torch.Tensor) else None for value in values
    ]
