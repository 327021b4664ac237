"""What AOTAutograd's descriptors say of the inputs and results of the graphs that it makes.

They say which result of the forward a tangent belongs to and which input a gradient; nothing is
concluded from shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import (
    GradAOTOutput,
    PlainAOTInput,
    PlainAOTOutput,
    TangentAOTInput,
)

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.tensor_type import TensorType


@dataclass(frozen=True)
class Traced:
    """A graph's placeholders (taken) and results (returned): a descriptor of each, None where there
    is none, and its type. Read before compiling rewrites the graph."""

    taken: tuple[object, ...]
    taken_types: tuple[TensorType, ...]
    returned: tuple[object, ...]
    returned_types: tuple[TensorType | None, ...]

    @classmethod
    def of(cls, graph: fx.Graph) -> Traced:
        placeholders, output = graph.find_nodes(op="placeholder"), graph.output_node()
        results = output.args[0]
        return cls(
            taken=tuple(node.meta.get("desc") for node in placeholders),
            taken_types=tuple(map(_type_of, placeholders)),
            returned=tuple(output.meta.get("desc") or (None,) * len(results)),
            returned_types=tuple(map(_type_of, results)),
        )


def _type_of(node: object) -> TensorType | None:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return TensorType.of(value) if isinstance(value, torch.Tensor) else None


def outputs_of_tangents(backward: Traced) -> tuple[int, ...]:
    """Indices of the outputs of the forward whose tangents its last placeholders are. Raises
    CaptureError."""
    marks = [d for d in backward.taken if isinstance(d, TangentAOTInput)]
    if any(not isinstance(mark.output, PlainAOTOutput) for mark in marks):
        raise CaptureError("its backward takes a gradient of something it does not return")
    if list(backward.taken[len(backward.taken) - len(marks) :]) != marks:
        raise CaptureError("its backward takes other inputs than saved values and gradients")
    return tuple(mark.output.idx for mark in marks)


def input_of(descriptor: object, type_: TensorType | None) -> int | None:
    """The index of the input that a result of the backward is the gradient of, None for a result
    that is no tensor. Raises CaptureError."""
    if type_ is None:
        return None
    if isinstance(descriptor, GradAOTOutput) and isinstance(descriptor.grad_of, PlainAOTInput):
        return descriptor.grad_of.idx
    raise CaptureError(f"its backward returns {descriptor}, which is no gradient of an input")


def restore_descriptors(forward: fx.GraphModule, metadata: Any) -> None:
    """Say of a forward's results what they are, which AOTAutograd forgets where the backward draws
    the random numbers of the forward once more."""
    output = forward.graph.output_node()
    special = metadata.num_mutated_inp_runtime_indices or metadata.num_intermediate_bases
    if "desc" in output.meta or special or metadata.num_outputs_aliased:
        return
    own = [PlainAOTOutput(index) for index in range(metadata.num_outputs)]
    output.meta["desc"] = (*own, *[None] * (len(output.args[0]) - len(own)))


def refuse_what_is_not_plain(metadata: Any, forward: Traced, saved_from: int) -> None:
    """Raises CaptureError for what AOTAutograd would do around the graph at every call: a program
    calls the graph alone. saved_from: where the results end that the model sees."""
    for info in metadata.input_info:
        if info.mutates_metadata or info.mutates_storage_metadata:
            raise CaptureError("it changes the shape or the memory of an input in place")
        if info.mutates_data and info.requires_grad and not info.mutations_hidden_from_autograd:
            raise CaptureError("it changes, in place, an input that requires a gradient")
    plain = all(isinstance(descriptor, PlainAOTInput) for descriptor in forward.taken)
    own = forward.returned[:saved_from]
    if not plain or not all(isinstance(descriptor, PlainAOTOutput) for descriptor in own):
        raise CaptureError("it writes to memory that several of its inputs share")
    if metadata.grad_enabled_mutation is not None:
        raise CaptureError("it switches gradients on or off for what follows")
    if metadata.tokens or metadata.is_rng_op_functionalized:
        raise CaptureError("it has effects that a program does not repeat")
