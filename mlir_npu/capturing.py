"""`mlir_npu.capture(model, *inputs)`: a model as one compiled function that is called directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from mlir_npu import logs
from mlir_npu.capture_checks import check_call
from mlir_npu.capture_stitched import capture_stitched
from mlir_npu.explanation import uncompiled
from mlir_npu.lowering.capture import GraphBreakError, WholeGraph, capture_whole, traceable
from mlir_npu.lowering.capture_compile import Executable, compile_whole
from mlir_npu.lowering.capture_inputs import describe_inputs
from mlir_npu.lowering.capture_origins import find_origins
from mlir_npu.lowering.capture_result import ResultPlan, plan_result
from mlir_npu.lowering.capture_watch import Watch
from mlir_npu.lowering.rare_collections import rare_collections
from mlir_npu.options import Options
from mlir_npu.program import Program
from mlir_npu.stitched import StitchedProgram


@rare_collections()
def capture(
    model: Callable,
    *inputs: Any,
    options: Mapping[str, Any] | None = None,
    train: bool = False,
    **keywords: Any,
) -> Program | StitchedProgram:
    """Compile `model`, called with inputs such as these, as one program.

    torch.compile guards everything a model reads of Python, and compiles again where it has
    changed. A program compares what it takes with what it was captured for, and raises where they
    differ; changes of weights and buffers take effect. The inputs give shapes, dtypes, strides, and
    the values of numbers and text.

    train: results have gradients, and inputs that require them here get them.

    A model of one graph is not run, for inference. Otherwise it is called once, on copies of the
    inputs, and what happens between its graphs is looked at: see `StitchedProgram`. Its buffers
    stay as they are.

    Raises CaptureError if what the model does cannot be repeated, OptionsError, StrictError, and
    TypeError for what is no model, or is not called so.
    """
    logs.configure_from_environment()
    parsed = Options.parse(options)
    model = uncompiled(model)
    check_call(model, inputs, keywords)
    if train:
        return capture_stitched(model, inputs, keywords, parsed, train=True)
    described, stand_ins = describe_inputs(model, inputs, keywords)
    arguments, named = described.unflatten(stand_ins)
    try:
        with torch.no_grad():
            graph = capture_whole(traceable(model), arguments, named)
    except GraphBreakError:
        return capture_stitched(model, inputs, keywords, parsed, train=False)
    if graph.results_share_memory:
        return capture_stitched(model, inputs, keywords, parsed, train=False)
    with torch.no_grad():
        given = [leaf for leaf in stand_ins if isinstance(leaf, torch.Tensor)]
        origins = find_origins((*graph.inputs, *graph.guarded), graph.scope, given)
        executable = None
        if graph.graph_module is not None:
            executable = compile_whole(graph, parsed, stand_ins, origins)
        watch = Watch.of(origins)
        result = _plan_result(graph, executable, stand_ins, watch)
    return Program(model, described, result, executable, watch, parsed)


def _plan_result(
    graph: WholeGraph, executable: Executable | None, leaves: Sequence[Any], watch: Watch
) -> ResultPlan:
    """From what the model makes of stand-ins for the results of its graph."""
    outputs = [torch.empty(0, device="cpu") for _ in range(graph.result_count)]

    def stand_in(*inputs: Any) -> list[Any]:
        for output, source in (executable.returned if executable else {}).items():
            outputs[output] = inputs[source]
        return outputs

    return plan_result(graph.run_around(stand_in), outputs, leaves, watch.tensors)
