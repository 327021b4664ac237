"""A program of one graph, in the terms of programs of many: a plan, a unit, and source."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import torch
from torch import fx

from mlir_npu.lowering.capture_compile import Executable
from mlir_npu.lowering.capture_inputs import Inputs, TensorInput
from mlir_npu.lowering.capture_result import Leaf, ResultPlan
from mlir_npu.lowering.compile_graph import CompiledGraph
from mlir_npu.lowering.program_names import Names, describe_output
from mlir_npu.lowering.program_plan import ProgramPlan, Run, Unit, Value
from mlir_npu.lowering.program_source import part_name, unit_source
from mlir_npu.lowering.program_units import part_calls
from mlir_npu.lowering.program_values import RESERVED
from mlir_npu.lowering.source_location import source_location
from mlir_npu.options import Options
from mlir_npu.stitched import Stitched

UNIT = "forward_0"  # as in programs of many


def stitched_graph(
    executable: Executable | None,
    inputs: Inputs,
    result: ResultPlan,
    names: Sequence[str],
    tensors: Sequence[torch.Tensor],
    autocast: torch.dtype | None,
    options: Options,
) -> Stitched:
    """Of a graph, or none, that neither writes to what it is given nor returns views. names,
    tensors: of the model."""
    values = _Values(inputs, names, tensors)
    unit: Unit | None = None
    graphs: dict[str, CompiledGraph] = {}
    if executable is not None:
        taken = [values.given[a.source, a.index] for a in executable.arguments]
        graphs = {UNIT: executable.inner}
        unit = _unit(executable.inner, taken, values)
    plan = _plan(unit, values, inputs, len(tensors))
    return Stitched(
        plan=plan,
        inputs=inputs,
        result=_renumbered(result, unit, plan.results),
        parts={
            part_name(unit_name, name): part
            for unit_name, graph in graphs.items()
            for name, part in graph.parts.items()
        },
        codes={},
        constants={},
        unit_sources={
            name: unit_source(unit, graph, values.table) for name, graph in graphs.items()
        },
        reports={name: graph.report for name, graph in graphs.items()},
        breaks=(),
        python_between=(),
        autocast=autocast,
        graphs={name: graph.plan for name, graph in graphs.items()},
        options=options,
    )


class _Values:
    """given: names by source ("input" or "model") and index."""

    def __init__(
        self, inputs: Inputs, names: Sequence[str], tensors: Sequence[torch.Tensor]
    ) -> None:
        self._names = Names(RESERVED)
        self.table: dict[str, Value] = {}
        self.given = {("input", tensor.index): self._input(tensor) for tensor in inputs.tensors}
        for index, (name, tensor) in enumerate(zip(names, tensors, strict=True)):
            kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
            self.given["model", index] = self.new(name, kind, tensor, f"{kind} {name}", name)

    def _input(self, tensor: TensorInput) -> str:
        stand_in = torch.empty_strided(
            tensor.shape, tensor.strides, dtype=tensor.dtype, device="meta"
        )
        return self.new(tensor.name, "input", stand_in, f"argument {tensor.name}", tensor.name)

    def new(
        self, wanted: str, kind: str, like: torch.Tensor, label: str, source: str | None = None
    ) -> str:
        name = self._names.new(wanted)
        dtype = str(like.dtype).removeprefix("torch.")
        shape, strides = tuple(like.shape), tuple(like.stride())
        self.table[name] = Value(name, kind, shape, strides, dtype, label, source)
        return name


def _plan(unit: Unit | None, values: _Values, inputs: Inputs, parameters: int) -> ProgramPlan:
    """parameters: how many tensors the model has."""
    outputs = unit.outputs if unit else ()
    return ProgramPlan(
        train=False,
        values=values.table,
        inputs=tuple(values.given["input", tensor.index] for tensor in inputs.tensors),
        parameters=tuple(values.given["model", index] for index in range(parameters)),
        constants=(),
        units=(unit,) if unit else (),
        forward=(Run(unit.name),) if unit else (),
        backward=(),
        results=tuple(dict.fromkeys(name for name in outputs if name is not None)),
        saved=(),
        tangents=(),
        gradients=(),
    )


def _unit(graph: CompiledGraph, inputs: Sequence[str], values: _Values) -> Unit:
    plan = graph.plan
    known: dict[str, str] = dict(zip(plan.placeholders, inputs, strict=True))
    nodes = {node.name: node for node in plan.graph_module.graph.nodes}
    for result in plan.results:
        if isinstance(result, str) and result not in known:
            node = nodes[result]
            label = describe_output(node)
            known[result] = values.new(result, "output", node.meta["val"], label)
    return Unit(
        name=UNIT,
        kind="inference",
        origin="graph",
        location=_location(plan.graph_module.graph),
        inputs=tuple(inputs),
        outputs=tuple(known[r] if isinstance(r, str) else None for r in plan.results),
        saved=(),
        written=(),
        placeholders=plan.placeholders,
        results=plan.results,
        parts=part_calls(graph),
    )


def _location(graph: fx.Graph) -> str | None:
    calls = (node for node in graph.nodes if node.op == "call_function")
    return next(filter(None, map(source_location, calls)), None)


def _renumbered(result: ResultPlan, unit: Unit | None, results: Sequence[str]) -> ResultPlan:
    """The result plan with indices of `results`, each of which is there once."""
    places: Mapping[str, int] = {name: index for index, name in enumerate(results)}

    def renumber(leaf: Leaf) -> Leaf:
        if leaf.source != "result" or unit is None:
            return leaf
        name = unit.outputs[leaf.index]
        if name is None:
            return Leaf("constant", value=unit.results[leaf.index])
        return Leaf("result", places[name])

    return dataclasses.replace(result, leaves=tuple(map(renumber, result.leaves)))
