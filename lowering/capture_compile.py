"""A captured graph -> what runs it: compiled regions and host parts, bound to the model's tensors.

AOTAutograd makes the graph functional, and wraps the compiled function in what copies mutations
back and makes outputs that are views of inputs. Most graphs need none of that, and are called
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import PlainAOTInput
from torch._functorch._aot_autograd.schemas import OutputType, ViewAndMutationMeta
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import TracingContext

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.capture import WholeGraph
from mlir_npu.lowering.capture_inputs import Inputs
from mlir_npu.lowering.capture_origins import Origins, origin_of
from mlir_npu.lowering.compile_graph import CompiledGraph, compile_graph
from mlir_npu.lowering.early_start import early_start
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.roles import CapturedGraph, readable
from mlir_npu.options import Options
from mlir_npu.runtime.binding import Binding, arranged
from mlir_npu.runtime.generated_region import GeneratedRegion
from mlir_npu.runtime.prepared import State
from mlir_npu.runtime.region import CompiledRegion


@dataclass(frozen=True)
class Argument:
    """Input leaf `index` of the program, or tensor `index` of the model."""

    source: Literal["input", "model"]
    index: int


@dataclass(frozen=True)
class Executable:
    """inner: the stitched graph; call: a boxed function around it, or `inner.call` itself;
    arguments: what it takes; written: those of them that a call changes; returned: result of
    Dynamo's graph -> the input that it is."""

    inner: CompiledGraph
    call: Callable
    arguments: tuple[Argument, ...]
    written: tuple[Argument, ...]
    returned: Mapping[int, int]

    def bind(self, tensors: Sequence[torch.Tensor], inputs: Inputs) -> Binding:
        """With these tensors of the model, for such inputs."""
        count = inputs.tree.num_leaves
        given = [tensors[a.index] if a.source == "model" else a.index for a in self.arguments]
        if self.call is not self.inner.call:
            return Binding(tensors, arranged(self.call, given, count, boxed=True), (), (), None)
        plan = self.inner.plan
        values = dict(zip(plan.placeholders, given, strict=True))
        strides = {tensor.index: tensor.strides for tensor in inputs.tensors}
        regions = [part for part in plan.parts if self._is_region(part)]
        bound = {name: values[name] for part in regions for name in self._parameters(part)}
        state = State.of(tuple(bound.values()))  # before the regions read: a write in between
        parts = dict(self.inner.parts)  # makes it stale
        for part in regions:
            parameters = [bound[name] for name in self._parameters(part)]
            packed = self._packed(part, values, strides)
            parts[part.name] = self.inner.parts[part.name].bound(parameters, packed)
        if len(plan.parts) == 1 and plan.parts[0].outputs == plan.results:
            (part,) = plan.parts
            call = arranged(parts[part.name], [values[name] for name in part.inputs], count)
        else:
            call = arranged(self.inner.with_parts(parts), given, count, boxed=True)
        read = self._read_in_calls(regions)
        loose = [v for name, v in values.items() if name in read and not isinstance(v, int)]
        return Binding(tensors, call, loose, tuple(bound.values()), state)

    def _is_region(self, part: Part) -> bool:
        return isinstance(self.inner.parts[part.name], (CompiledRegion, GeneratedRegion))

    def _parameters(self, part: Part) -> list[str]:
        """Inputs of a region whose contents it knows from one call to the next."""
        return [part.inputs[i] for i in self.inner.parts[part.name].interface.parameters]

    def _read_in_calls(self, regions: Sequence[Part]) -> set[str]:
        """Values that parts or the caller take at every call."""
        read = {name for name in self.inner.plan.results if isinstance(name, str)}
        for part in self.inner.plan.parts:
            known = self._parameters(part) if part in regions else ()
            read |= {*part.inputs} - {*known}
        return read

    def _packed(
        self,
        part: Part,
        values: Mapping[str, torch.Tensor | int],
        strides: Mapping[int, tuple[int, ...]],
    ) -> frozenset[int]:
        """Inputs of a region that always have the strides that it takes."""
        region, found = self.inner.parts[part.name], set()
        for i, name in enumerate(part.inputs):
            value = values.get(name)  # None if another part makes it
            if isinstance(value, torch.Tensor):
                laid_out = None if value.is_neg() else value.stride()
            else:
                laid_out = strides.get(value)
            if laid_out == region.interface.inputs[i].strides:
                found.add(i)
        return frozenset(found)


def compile_whole(
    graph: WholeGraph, options: Options, leaves: Sequence[Any], origins: Origins
) -> Executable:
    """leaves: those that the graph was captured with. Raises CaptureError, and what compile_graph
    raises."""
    given = _arguments(graph, leaves, origins)
    names = [source.name for source in graph.inputs]
    roles = CapturedGraph(graph.graph_module, graph.example_inputs, names)
    found: list[tuple[CompiledGraph, ViewAndMutationMeta, list]] = []

    def inference(inner: fx.GraphModule, _: Sequence) -> Callable:
        compiled = compile_graph(inner, kind="inference", options=options, roles=roles.roles(inner))
        descriptors = [n.meta.get("desc") for n in inner.graph.find_nodes(op="placeholder")]
        found.append((compiled, TracingContext.get().fw_metadata, descriptors))
        return compiled.call

    with graph.compiling(), early_start(graph.graph_module, graph.example_inputs, options):
        # torch's own wrapper of it would load TorchInductor, which takes longer than partitioning
        outer = aot_module_simplified(
            graph.graph_module,
            graph.example_inputs,
            fw_compiler=_refuse_gradients,
            bw_compiler=_refuse_gradients,
            inference_compiler=inference,
            decompositions={},
        )
    ((compiled, metadata, descriptors),) = found
    written = tuple(
        argument
        for argument, info in zip(given, metadata.input_info, strict=True)
        if info.mutates_data or info.mutates_metadata or info.mutates_storage_metadata
    )
    if not written and _is_plain(metadata, descriptors):
        order = tuple(given[descriptor.idx] for descriptor in descriptors)
        return Executable(compiled, compiled.call, order, (), {})
    returned = {
        index: info.base_idx
        for index, info in enumerate(metadata.output_info)
        if info.output_type is OutputType.is_input
    }
    plain = torch._dynamo.disable(outer)
    return Executable(compiled, lambda arguments: plain(*arguments), given, written, returned)


def _arguments(graph: WholeGraph, leaves: Sequence[Any], origins: Origins) -> tuple[Argument, ...]:
    """What the inputs of Dynamo's graph are."""
    inputs = {id(leaf): i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
    tensors = {origin.source: i for i, origin in enumerate(origins.tensors)}
    found = []
    for source in graph.inputs:
        if source.name in tensors:
            found.append(Argument("model", tensors[source.name]))
            continue
        origin = origin_of(source, graph.scope)
        if origin is None or id(origin.value) not in inputs:
            raise CaptureError(f"it takes {readable(source.name)}, which is not a tensor")
        found.append(Argument("input", inputs[id(origin.value)]))
    return tuple(found)


def _is_plain(metadata: ViewAndMutationMeta, descriptors: Sequence) -> bool:
    """Whether inputs and outputs of the inner graph are those of the outer one, with nothing left
    to do."""
    return (
        all(isinstance(descriptor, PlainAOTInput) for descriptor in descriptors)
        and metadata.num_outputs_aliased == 0
        and metadata.num_intermediate_bases == 0
        and metadata.grad_enabled_mutation is None
        and not metadata.tokens
        and not metadata.is_rng_op_functionalized
    )


def _refuse_gradients(graph: fx.GraphModule, inputs: Sequence) -> Callable:
    raise CaptureError("it computes gradients itself")
