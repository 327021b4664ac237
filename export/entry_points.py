"""How a plan describes the entry points of compiled parts."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from mlir_npu.export.plan import Value
from mlir_npu.export.plan_steps import Slot
from mlir_npu.lowering.plan import Part
from mlir_npu.runtime.signature import FunctionSignature


def call_slots(function: FunctionSignature, values: Mapping[int, Value]) -> tuple[Slot, ...]:
    """Of every argument of a function. values: by the index of the argument, of those that are
    tensors."""

    def slot(index: int) -> Slot:
        argument = function.arguments[index]
        if argument.role == "workspace":
            return Slot(workspace=argument.bytes)
        if argument.role == "scratch":
            return Slot(scratch=argument.bytes)
        return Slot(value=values[index].name)

    return tuple(map(slot, range(len(function.arguments))))


def aten_calls(part: Part) -> tuple[str, ...]:
    """Of a part, in order."""
    return tuple(
        str(node.target)
        for node in part.graph_module.graph.nodes
        if node.op == "call_function" and node.target is not operator.getitem
    )
