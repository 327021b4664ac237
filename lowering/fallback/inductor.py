"""Host parts through TorchInductor.

AOTAutograd has run already, so a part goes to Inductor's inner compiler and never to `compile_fx`, which
would run it again. Inductor expects graphs in its own decompositions: the part is re-traced with them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch._dynamo.utils import detect_fake_mode
from torch.fx.experimental.proxy_tensor import make_fx

from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options


def compile_host_inductor(part: Part, options: Options) -> Callable:
    """Compiled part; raises HostLoweringError if Inductor cannot (a missing C++ compiler, say)."""
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table

    values = [node.meta["val"] for node in part.graph_module.graph.find_nodes(op="placeholder")]
    mode = detect_fake_mode(values)
    try:
        traced = _retrace(part.graph_module, values, select_decomp_table(), mode)
        compiled = compile_fx_inner(traced, values)
    except Exception as error:  # every failure of Inductor ends here: the part still runs, in eager
        message = (str(error).strip() or "no message").splitlines()[0]
        raise HostLoweringError(f"Inductor: {type(error).__name__}: {message}") from error
    expected = tuple(_static_strides(node) for node in _returned(part.graph_module))

    def call(*arguments):
        outputs = compiled(list(arguments))
        return tuple(map(_with_strides, outputs, expected))

    return call


def _retrace(graph_module: fx.GraphModule, values: list, table: dict, mode) -> fx.GraphModule:
    if mode is None:
        return make_fx(graph_module, decomposition_table=table, tracing_mode="real")(*values)
    with mode:
        return make_fx(graph_module, decomposition_table=table)(*values)


def _returned(graph_module: fx.GraphModule) -> tuple:
    (output,) = graph_module.graph.find_nodes(op="output")
    return output.args[0]


def _static_strides(node) -> tuple[int, ...] | None:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    strides = value.stride()
    return strides if all(isinstance(stride, int) for stride in strides) else None


def _with_strides(output, strides: tuple[int, ...] | None):
    """Inductor may choose other strides for values it does not know to be results; ours are promised."""
    if strides is None or not isinstance(output, torch.Tensor) or output.stride() == strides:
        return output
    copy = torch.empty_strided(output.shape, strides, dtype=output.dtype, device=output.device)
    return copy.copy_(output)
