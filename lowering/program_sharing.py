"""Outputs of a graph that share memory with each other, or with what was there before."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.program_graphs import TorchGraph
from mlir_npu.lowering.program_values import ProgramValues, storage_of
from mlir_npu.lowering.tensor_type import TensorType

Made = tuple[torch.Tensor, fx.Node]  # a tensor of the recorded call, and the node that made it


def split_outputs(
    graph: TorchGraph, wanted: Sequence[Made], values: ProgramValues
) -> tuple[list[Made], list[Made]]:
    """Outputs with memory of their own, and views of those or of what was there before. Raises
    CaptureError."""
    groups: dict[int, list[Made]] = {}
    for tensor, node in wanted:
        groups.setdefault(storage_of(tensor), []).append((tensor, node))
    bases, views = [], []
    for group in groups.values():
        if values.base_of(group[0][0]) is not None:
            views += group
            continue
        base = group[0] if len(group) == 1 else _base(graph, group)
        bases.append(base)
        views += [(tensor, node) for tensor, node in group if tensor is not base[0]]
    return bases, views


def overlaps(type_: TensorType) -> bool:
    """Whether elements may share memory, but for repeated ones (stride 0)."""
    reach = 0
    for stride, size in sorted(zip(type_.strides, type_.shape)):
        if size > 1 and stride:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def _base(graph: TorchGraph, group: Sequence[Made]) -> Made:
    """The output whose memory holds that of all of them, or the value in the graph that they are
    views of."""
    size = group[0][0].untyped_storage().nbytes()
    for tensor, node in group:
        if tensor.storage_offset() == 0 and tensor.numel() * tensor.element_size() == size:
            return tensor, node
    tensor, node = group[0]
    value = node.meta.get("example_value")
    for root in graph.graph_module.graph.nodes:
        found = root.meta.get("example_value")
        if (
            isinstance(found, torch.Tensor)
            and isinstance(value, torch.Tensor)
            and storage_of(found) == storage_of(value)
        ):
            stand_in = tensor.detach().as_strided(
                found.shape, found.stride(), found.storage_offset()
            )
            return stand_in.requires_grad_(found.requires_grad), root
    raise CaptureError(
        "results share memory that none of them holds", graph.place.location, graph.place.line
    )
