"""One graph of a program -> a compiled forward, and the backward that belongs to it, at once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.descriptors import PlainAOTInput
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from mlir_npu.lowering.compile_graph import CompiledGraph, compile_graph
from mlir_npu.lowering.joint_graph import partition_joint
from mlir_npu.lowering.program_descriptors import (
    Traced,
    input_of,
    outputs_of_tangents,
    refuse_what_is_not_plain,
    restore_descriptors,
)
from mlir_npu.lowering.program_events import Mode
from mlir_npu.lowering.program_plan import PartCall
from mlir_npu.lowering.roles import CapturedGraph, Role, describe_value
from mlir_npu.lowering.tensor_type import TensorType
from mlir_npu.options import Options


@dataclass(frozen=True)
class Argument:
    """name: what it is called for people; static: a parameter or buffer."""

    name: str
    static: bool


@dataclass(frozen=True)
class CompiledUnit:
    """The forward takes inputs of the unit in the order of `takes`, and returns output `k` at
    `returns[k]`, and what the backward needs from position `saved_from` on. `written`: inputs it
    changes.

    The backward takes what was saved, then a tangent for each output of `tangents`, and returns
    gradients of the inputs in `gradients`, None where there is nothing to return. types: of all
    that the forward returns and the backward takes and returns.
    """

    forward: CompiledGraph
    takes: tuple[int, ...]
    returns: tuple[int, ...]
    saved_from: int
    written: tuple[int, ...]
    forward_types: tuple[TensorType | None, ...]
    backward: CompiledGraph | None = None
    tangents: tuple[int, ...] = ()
    gradients: tuple[int | None, ...] = ()
    tangent_types: tuple[TensorType, ...] = ()
    gradient_types: tuple[TensorType | None, ...] = ()


def compile_unit(
    graph_module: fx.GraphModule,
    inputs: Sequence[TensorType],
    arguments: Sequence[Argument],
    options: Options,
    *,
    mode: Mode,
) -> CompiledUnit:
    """inputs: what it will be called with; arguments: what these are, in the same order; mode: in
    which it was called. Raises CaptureError, PyTorch's errors for sizes and numbers that depend on
    data, and what compile_graph raises."""
    # sizes that only data know are refused
    shapes = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
    fake = FakeTensorMode(shape_env=shapes, static_shapes=True, allow_non_fake_inputs=True)
    examples = [_example(fake, type_) for type_ in inputs]
    compiler = _Compiler(graph_module, examples, arguments, options)
    eager_backward = functorch_config.patch(force_non_lazy_backward_lowering=True)
    with tracing(TracingContext(fake)), eager_backward, mode.restored():
        aot_autograd(
            fw_compiler=functools.partial(compiler.compile, "forward"),
            bw_compiler=functools.partial(compiler.compile, "backward"),
            inference_compiler=functools.partial(compiler.compile, "inference"),
            partition_fn=partition_joint,
            decompositions={},
            keep_inference_input_mutations=True,
        )(graph_module, examples)
    return compiler.finish(len(graph_module.graph.output_node().args[0]))


def _example(mode: FakeTensorMode, type_: TensorType) -> torch.Tensor:
    with mode:
        made = torch.empty_strided(type_.shape, type_.strides, dtype=type_.dtype, device="cpu")
    return made.requires_grad_(type_.requires_grad)


def part_calls(compiled: CompiledGraph) -> tuple[PartCall, ...]:
    engines = {part.name: part.engine for part in compiled.report.parts}
    return tuple(
        PartCall(part.name, part.place, engines[part.name], part.inputs, part.outputs)
        for part in compiled.plan.parts
    )


class _Compiler:
    """Sees the graphs that AOTAutograd makes of one unit."""

    def __init__(
        self,
        graph_module: fx.GraphModule,
        examples: Sequence[torch.Tensor],
        arguments: Sequence[Argument],
        options: Options,
    ) -> None:
        names = [argument.name for argument in arguments]
        self._captured = CapturedGraph(graph_module, examples, names)
        self._arguments, self._options = arguments, options
        self._traced: dict[str, Traced] = {}
        self._compiled: dict[str, CompiledGraph] = {}
        self._metadata: Any = None

    def compile(self, kind: str, graph: fx.GraphModule, _: Sequence) -> Callable:
        """kind: "forward", "backward" or "inference"."""
        if kind == "forward":
            restore_descriptors(graph, TracingContext.get().fw_metadata)
        self._traced[kind] = Traced.of(graph.graph)
        if kind == "backward":
            graph = self._captured.with_named_gradients(graph)
        else:
            self._captured.learn_results(graph)
            self._metadata = TracingContext.get().fw_metadata
        compiled = compile_graph(graph, kind=kind, options=self._options, roles=self._roles(graph))
        self._compiled[kind] = compiled
        return compiled.call

    def _roles(self, graph: fx.GraphModule) -> dict[str, Role]:
        roles = self._captured.roles(graph)
        for node in graph.graph.find_nodes(op="placeholder"):
            descriptor = node.meta.get("desc")
            if isinstance(descriptor, PlainAOTInput):
                argument = self._arguments[descriptor.idx]
                text = f"{argument.name}: {describe_value(node.meta.get('val'))}"
                roles[node.name] = Role(text, argument.static)
        return roles

    def finish(self, outputs: int) -> CompiledUnit:
        """outputs: how many the graph returns. Raises CaptureError."""
        kind = "forward" if "forward" in self._compiled else "inference"
        traced, info = self._traced[kind], self._metadata
        backward = self._traced.get("backward")
        tangents = outputs_of_tangents(backward) if backward else ()
        saved = len(backward.taken) - len(tangents) if backward else 0
        saved_from = len(traced.returned) - saved
        refuse_what_is_not_plain(info, traced, saved_from)
        where = {d.idx: i for i, d in enumerate(traced.returned[:saved_from])}
        unit = CompiledUnit(
            forward=self._compiled[kind],
            takes=tuple(descriptor.idx for descriptor in traced.taken),
            returns=tuple(where[index] for index in range(outputs)),
            saved_from=saved_from,
            written=tuple(i for i, one in enumerate(info.input_info) if one.mutates_data),
            forward_types=traced.returned_types,
        )
        if backward is None:
            return unit
        return dataclasses.replace(
            unit,
            backward=self._compiled["backward"],
            tangents=tangents,
            tangent_types=backward.taken_types[saved:],
            gradients=tuple(map(input_of, backward.returned, backward.returned_types)),
            gradient_types=backward.returned_types,
        )
