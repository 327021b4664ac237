"""`mlir_npu.explain(model, *inputs)`: what ran where, and why not on the NPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.backend import mlir_npu
from mlir_npu.break_costs import with_costs
from mlir_npu.graph_breaks import GraphBreak, record_graph_breaks
from mlir_npu.lowering.part_calls import watch_region_calls
from mlir_npu.lowering.report import GraphReport, PartReport, collect
from mlir_npu.options import Options


@dataclass(frozen=True)
class Explanation:
    """What one call of a model compiled to. `print` it to read it.

    graphs: in the order of compilation; breaks: between them; result: what the call returned.
    Counts are sums over all graphs; nodes are ATen calls.
    """

    graphs: tuple[GraphReport, ...]
    breaks: tuple[GraphBreak, ...]
    result: Any

    @property
    def regions(self) -> int:
        """Regions that run on the NPU."""
        return sum(len(graph.regions) for graph in self.graphs)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of convolutions and matrix products."""
        return sum(part.macs for part in self._parts())

    @property
    def npu_macs(self) -> int:
        return sum(part.macs for part in self._parts() if part.engine == "npu")

    @property
    def conv_macs(self) -> int:
        """Multiply-accumulates of convolutions only."""
        return sum(part.conv_macs for part in self._parts())

    @property
    def npu_conv_macs(self) -> int:
        return sum(part.conv_macs for part in self._parts() if part.engine == "npu")

    @property
    def integer_macs(self) -> int:
        """Multiply-accumulates of 8-bit integers, which are on the NPU."""
        return sum(part.integer_macs for part in self._parts())

    @property
    def npu_nodes(self) -> int:
        return sum(part.node_count for part in self._parts() if part.engine == "npu")

    @property
    def host_nodes(self) -> int:
        return sum(part.node_count for part in self._parts() if part.engine != "npu")

    @property
    def source(self) -> str:
        """The stitched functions of all graphs, as Python text."""
        return "\n".join(graph.source for graph in self.graphs)

    def _parts(self) -> Iterator[PartReport]:
        return (part for graph in self.graphs for part in graph.parts)

    def __str__(self) -> str:
        from mlir_npu.explanation_text import render

        return render(self)


def explain(
    model: Callable,
    *inputs: Any,
    options: Mapping[str, Any] | None = None,
    train: bool = False,
    **keywords: Any,
) -> Explanation:
    """Compile `model`, call it on the inputs, and report. A compiled model is compiled anew.

    The call is real: in training mode it updates the statistics of batch normalization.
    train: also run the backward of the sum of all floating-point results, without touching any
    `.grad`; otherwise the call runs under no_grad.
    Raises OptionsError, StrictError (inside Dynamo's BackendCompilerFailed), and what the model
    raises.
    """
    Options.parse(options)

    def backend(graph_module, example_inputs):
        return mlir_npu(graph_module, example_inputs, options=options)

    compiled = torch.compile(uncompiled(model), backend=backend)
    # every call compiles afresh, which must not use up the limit of the program it looks at
    unlimited = torch._dynamo.config.patch(
        recompile_limit=1 << 20, accumulated_recompile_limit=1 << 20
    )
    gradients = torch.enable_grad() if train else torch.no_grad()
    with (
        unlimited,
        gradients,
        record_graph_breaks() as breaks,
        collect() as reports,
        watch_region_calls() as calls,
    ):
        result = compiled(*inputs, **keywords)
        if train:
            _run_backward(result)
    return Explanation(tuple(reports), with_costs(breaks, reports, calls), result)


def uncompiled(model: Callable) -> Callable:
    """What torch.compile was given, for what it returned."""
    if isinstance(model, torch._dynamo.eval_frame.OptimizedModule):
        return model._orig_mod
    return getattr(model, "_torchdynamo_orig_callable", model)


def _run_backward(result: Any) -> None:
    """Gradients of every leaf that the results depend on, thrown away."""
    tensors = [
        leaf
        for leaf in pytree.tree_leaves(result)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    leaves = _gradient_leaves(tensors)
    if leaves:
        total = sum(tensor.sum() for tensor in tensors)
        torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)


def _gradient_leaves(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors whose `.grad` a backward from `tensors` would fill."""
    leaves = [tensor for tensor in tensors if tensor.grad_fn is None]
    pending, seen = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None], set()
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        with contextlib.suppress(AttributeError):  # only AccumulateGrad has it
            leaves.append(function.variable)
        pending += [following for following, _ in function.next_functions if following is not None]
    return leaves
