"""A recorded call of a model -> a plan of units, and the compiled units themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

from mlir_npu.lowering.compile_graph import CompiledGraph
from mlir_npu.lowering.program_backward import plan_backward
from mlir_npu.lowering.program_calls import graph_of_calls
from mlir_npu.lowering.program_events import CallEvent, GraphEvent, Place, ReadEvent
from mlir_npu.lowering.program_forward import ProgramForward
from mlir_npu.lowering.program_graphs import TorchGraph, graph_of_event
from mlir_npu.lowering.program_plan import Kind, ProgramPlan, Value
from mlir_npu.lowering.program_record import Recording
from mlir_npu.lowering.program_values import Known, ProgramValues
from mlir_npu.options import Options


@dataclass(frozen=True, eq=False)
class BuiltProgram:
    """units: compiled graphs by the names of their units; tensors: parameters and constants of the
    plan; results: the tensors of the recorded call behind `plan.results`."""

    plan: ProgramPlan
    units: Mapping[str, CompiledGraph]
    tensors: Mapping[str, torch.Tensor]
    results: tuple[torch.Tensor, ...]


def build_program(
    recording: Recording, known: Known, options: Options, *, train: bool
) -> BuiltProgram:
    """train: plan gradients too. Raises CaptureError, and what compile_graph raises."""
    forward = ProgramForward(ProgramValues(known), options)
    items = _items(recording)
    results = [
        leaf for leaf in pytree.tree_leaves(recording.result) if isinstance(leaf, torch.Tensor)
    ]
    needed = {id(tensor) for tensor in results}
    for item in items:
        used = item.inputs if isinstance(item, TorchGraph) else (item.tensor, item.listed)
        needed |= {id(tensor) for tensor in used}
    for item in items:
        if isinstance(item, TorchGraph):
            forward.add_graph(item, needed)
        else:
            forward.add_check(item)
    return _finish(forward, results, train)


def _items(recording: Recording) -> list[TorchGraph | ReadEvent]:
    """Graphs, and numbers to check; calls that follow each other under one mode are one graph."""
    events = [e for e in recording.events if not isinstance(e, ReadEvent) or e.decides]
    items: list[TorchGraph | ReadEvent] = []
    for (kind, _), group in itertools.groupby(
        events, lambda e: (type(e), getattr(e, "mode", None))
    ):
        if kind is CallEvent:
            items.append(graph_of_calls(list(group)))
            continue
        for event in group:
            items += _of_graph(event) if kind is GraphEvent else [event]
    return items


def _of_graph(event: GraphEvent) -> list[TorchGraph | ReadEvent]:
    graph = graph_of_event(event)
    return [graph, *graph.assertions]


def _finish(forward: ProgramForward, results: Iterable[torch.Tensor], train: bool) -> BuiltProgram:
    outputs: dict[str, torch.Tensor] = {}
    for tensor in results:
        name = forward.resolve(tensor, "the result", Place())
        if forward.values.table[name].kind == "output":
            outputs.setdefault(name, tensor)
    backward = plan_backward(forward, list(outputs) if train else [])
    table = forward.values.table
    plan = ProgramPlan(
        train=train,
        values=table,
        inputs=_of_kind(table, "input"),
        parameters=_of_kind(table, "parameter", "buffer"),
        constants=_of_kind(table, "constant"),
        units=tuple(forward.units.values()),
        forward=tuple(forward.steps),
        backward=tuple(backward.steps),
        results=tuple(outputs),
        saved=tuple(backward.saved),
        tangents=tuple(backward.tangents),
        gradients=tuple(backward.gradients),
    )
    return BuiltProgram(plan, forward.graphs, forward.values.tensors, tuple(outputs.values()))


def _of_kind(table: Mapping[str, Value], *kinds: Kind) -> tuple[str, ...]:
    return tuple(name for name, value in table.items() if value.kind in kinds)
