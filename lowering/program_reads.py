"""Numbers that Python gets of tensors while a model is called, each with a tensor that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from mlir_npu.lowering.program_events import CallEvent, ReadEvent, place_of


def reads_of_list(event: CallEvent) -> list[ReadEvent]:
    """Of every number in what `tolist` returned, for those that come back."""
    tensor = event.arguments[0]
    with torch._C.DisableTorchFunction():
        elements = tensor.detach().reshape(-1)
        if elements.untyped_storage()._cdata != tensor.untyped_storage()._cdata:
            return []
        return [
            ReadEvent(elements[index], number, event.place, listed=tensor)
            for index, number in enumerate(pytree.tree_leaves(event.result))
        ]


def numbers_as_tensors(
    graph_module: fx.GraphModule, outputs: Sequence[Any]
) -> tuple[tuple, list[ReadEvent]]:
    """The outputs of a graph with tensors in the place of numbers that depend on data, and these
    numbers."""
    seen, reads = [], []
    for output, node in zip(outputs, graph_module.graph.output_node().args[0], strict=True):
        if isinstance(output, (bool, int, float)) and isinstance(node, fx.Node):
            number, output = output, torch.tensor(output)
            reads.append(ReadEvent(output, number, place_of(node)))
        seen.append(output)
    return tuple(seen), reads
