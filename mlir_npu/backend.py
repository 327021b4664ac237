"""The function behind `torch.compile(model, backend="mlir_npu")`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext

from mlir_npu import logs
from mlir_npu.options import Options


def mlir_npu(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable:
    """Compile one Dynamo graph. `options`: see `mlir_npu.Options`; `mode`: None, "default" or
    "max-autotune", the option `autotune`.

    AOTAutograd runs once and hands over functional ATen graphs: one for inference, or forward and
    backward, the latter when the first gradient is asked for. Hardly anything is decomposed there,
    so that support rules and reports speak of the ops that a person would name.
    """
    logs.configure_from_environment()
    parsed = Options.parse(options, mode)

    from mlir_npu.lowering.compile_graph import compile_graph
    from mlir_npu.lowering.early_start import early_start
    from mlir_npu.lowering.joint_graph import partition_joint
    from mlir_npu.lowering.rare_collections import rare_collections
    from mlir_npu.lowering.roles import CapturedGraph
    from mlir_npu.lowering.specializations import Specializations
    from mlir_npu.lowering.specialize import specialize
    from mlir_npu.lowering.symbols import has_known_symbols, input_symbols, size_reader

    captured = CapturedGraph(graph_module, example_inputs)
    symbols = input_symbols(graph_module)

    def compile_(graph: fx.GraphModule, _: Sequence[Any], *, kind: str) -> Callable:
        if kind == "backward":
            graph = captured.with_named_gradients(graph)
        else:
            captured.learn_results(graph)
            _donate_nothing()

        def compile_static(static: fx.GraphModule, sizes: Mapping[Any, int] = {}) -> Callable:
            roles = captured.roles(static)
            text = captured.describe_sizes(sizes)
            return compile_graph(
                static, kind=kind, options=parsed, roles=roles, sizes=text, captured=captured
            ).call

        reader = size_reader(graph, symbols)
        if reader is None:
            return compile_static(specialize(graph, {}) if has_known_symbols(graph) else graph)
        return Specializations(graph, reader, compile_static, always=parsed.strict)

    compiler = aot_autograd(
        fw_compiler=functools.partial(compile_, kind="forward"),
        bw_compiler=functools.partial(compile_, kind="backward"),
        inference_compiler=functools.partial(compile_, kind="inference"),
        partition_fn=partition_joint,
        decompositions={},
        # else what a checkpointed part writes is written after the backward has kept it
        keep_inference_input_mutations=True,
    )
    with rare_collections(), early_start(graph_module, example_inputs, parsed):
        return compiler(graph_module, example_inputs)


def _donate_nothing() -> None:
    """Take back that the backward may overwrite saved values: none of our parts does so, and it
    would forbid retain_graph=True."""
    metadata = TracingContext.get().fw_metadata
    if metadata is not None:
        metadata.bw_donated_idxs = []
