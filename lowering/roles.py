"""What the inputs of a captured graph are: a parameter, an argument, a saved value, a gradient.

AOTAutograd names inputs by number (primals_7, arg3_1, tangents_1). Dynamo's graph knows where each
came from in the user's program, and the descriptors that AOTAutograd leaves on its placeholders say
which is which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import (
    AOTOutput,
    BufferAOTInput,
    ParamAOTInput,
    PlainAOTInput,
    TangentAOTInput,
)

_ZERO_POINTS = (torch.int64, torch.int32, torch.int8)


@dataclass(frozen=True)
class Role:
    """text: for people, with dtype and shape; static: a parameter or buffer; zeros: integers that
    are all 0 now, as the zero points of most quantised weights."""

    text: str
    static: bool
    zeros: bool = False


class CapturedGraph:
    """One graph of Dynamo; AOTAutograd makes an inference graph of it, or forward and backward.

    names: where its inputs come from, as Dynamo writes it, if the graph does not know any more.
    ended_by: why Dynamo ended the graph where it did, if that was a graph break.
    """

    def __init__(
        self,
        graph_module: fx.GraphModule,
        example_inputs: Sequence[object],
        names: Sequence[str] | None = None,
    ) -> None:
        placeholders = graph_module.graph.find_nodes(op="placeholder")
        names = names or [_source_name(node) for node in placeholders]
        nested = any(isinstance(value, (list, tuple, dict)) for value in example_inputs)
        # nested inputs get flattened, after which positions say nothing
        self._sources = [] if nested else list(map(_source, placeholders, names, example_inputs))
        self._sizes = {
            value.node.expr: readable(name)
            for node, name in zip(placeholders, names, strict=True)
            if isinstance(value := node.meta.get("example_value"), torch.SymInt)
        }
        self._results: dict[AOTOutput, str] = {}
        reason = getattr(graph_module, "compile_subgraph_reason", None)
        self.ended_by = reason if reason is not None and reason.graph_break else None

    def learn_results(self, forward: fx.GraphModule) -> None:
        """Remember the names of the forward's results; the backward's gradients belong to them."""
        output = forward.graph.output_node()
        descriptors = output.meta.get("desc") or ()
        self._results = {
            descriptor: node.name
            for descriptor, node in zip(descriptors, output.args[0])
            if isinstance(node, fx.Node)
        }

    def with_named_gradients(self, backward: fx.GraphModule) -> fx.GraphModule:
        """A copy in which `tangents_1` is called `grad_<result of the forward>`."""
        graph = fx.Graph()
        graph.output(graph.graph_copy(backward.graph, values := {}))
        for node in backward.graph.find_nodes(op="placeholder"):
            descriptor = node.meta.get("desc")
            if isinstance(descriptor, TangentAOTInput) and descriptor.output in self._results:
                values[node]._rename(f"grad_{self._results[descriptor.output]}")
        return fx.GraphModule(backward, graph)

    def roles(self, graph_module: fx.GraphModule) -> dict[str, Role]:
        """Role of every placeholder."""
        found = {}
        for node in graph_module.graph.find_nodes(op="placeholder"):
            source = self._explain(node.meta.get("desc"))
            found[node.name] = Role(
                f"{source.text}: {describe_value(node.meta.get('val'))}",
                source.static,
                source.zeros,
            )
        return found

    def describe_sizes(self, sizes: Mapping[object, int]) -> str:
        """ "x.size()[0] = 4" for every symbol and its value."""
        return ", ".join(
            f"{self._sizes.get(symbol, symbol)} = {size}" for symbol, size in sizes.items()
        )

    def _explain(self, descriptor: object) -> Role:
        if isinstance(descriptor, PlainAOTInput) and descriptor.idx < len(self._sources):
            return self._sources[descriptor.idx]
        if isinstance(descriptor, (ParamAOTInput, BufferAOTInput)):
            kind = "parameter" if isinstance(descriptor, ParamAOTInput) else "buffer"
            return Role(f"{kind} {descriptor.target}", static=True)
        if isinstance(descriptor, TangentAOTInput):
            result = self._results.get(descriptor.output, descriptor.output.expr())
            return Role(f"gradient of the forward's {result}", static=False)
        if descriptor is None:
            return Role("saved by the forward", static=False)
        return Role(descriptor.expr(), static=False)


def describe_value(value: object) -> str:
    """ "float32[2, 3, 8, 8]" of a tensor, else the type's name."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"


def _source_name(node: fx.Node) -> str:
    source = getattr(node.meta.get("grapharg"), "source", None)
    return source.name if source is not None else node.name


def _source(node: fx.Node, name: str, example: object) -> Role:
    """What a placeholder of Dynamo's graph is."""
    marked = (node.meta.get("tensor_dict") or {}).get("_dynamo_static_input_type")
    kind = (
        "parameter" if "._parameters[" in name else "buffer" if "._buffers[" in name else "argument"
    )
    static = marked is not None
    return Role(f"{kind} {readable(name)}", static, static and _are_zeros(example))


def _are_zeros(example: object) -> bool:
    if type(example) not in (torch.Tensor, torch.nn.Parameter) or example.device.type != "cpu":
        return False  # fake, distributed or elsewhere: nothing to look at
    return example.dtype in _ZERO_POINTS and not example.any()


def readable(source: str) -> str:
    """L['self']._modules['0']._parameters['weight'] -> 0.weight; L['args'][0] -> args[0]"""
    text = re.sub(r"\._(?:modules|parameters|buffers)\['([^']*)'\]", r".\1", source)
    if text != source:
        text = re.sub(r"^L\['(?:self|fn)'\]\.", "", text)
    return re.sub(r"L\['([^']*)'\]", r"\1", text)
