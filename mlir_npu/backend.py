"""The function behind `torch.compile(model, backend="mlir_npu")`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd

from mlir_npu import logs
from mlir_npu.options import Options


def mlir_npu(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable:
    """Compile one Dynamo graph. `options`: see `mlir_npu.Options`; `mode`: None or "default".

    AOTAutograd runs once and hands over functional ATen graphs: one for inference, or forward and
    backward, the latter when the first gradient is asked for. Hardly anything is decomposed there, so
    that support rules and reports speak of the ops that a person would name.
    """
    logs.configure()
    parsed = Options.parse(options, mode)

    def compiler(kind: str) -> Callable:
        return functools.partial(_compile, kind=kind, options=parsed)

    compile_ = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions={},
    )
    return compile_(graph_module, example_inputs)


def _compile(
    graph_module: fx.GraphModule, example_inputs: Sequence[Any], *, kind: str, options: Options
) -> Callable:
    from mlir_npu.lowering.compile_graph import compile_graph

    return compile_graph(
        graph_module, kind=kind, options=options, parameters=_static_inputs(graph_module, kind)
    )


def _static_inputs(graph_module: fx.GraphModule, kind: str) -> frozenset[str]:
    """Placeholders that are parameters or buffers of the model."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return frozenset()
    names = [node.name for node in graph_module.graph.find_nodes(op="placeholder")]
    if kind == "backward":
        # saved forward inputs keep their forward names, primals_1 being the first
        static = {f"primals_{index + 1}" for index in metadata.static_input_indices}
        return frozenset(static.intersection(names))
    return frozenset(names[index] for index in metadata.static_input_indices if index < len(names))
