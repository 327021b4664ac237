"""ATen calls as data, for parts that have no machine code."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from torch import fx

from mlir_npu.export.plan_steps import HostCall
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.source_location import source_location


def describe_calls(
    part: Part, reasons: Mapping[str, str], names: Mapping[str, str]
) -> tuple[HostCall, ...]:
    """The part's calls in order; names: of values in the plan, by their names in the graph. What
    is made between two calls keeps its name of the graph."""
    return tuple(
        HostCall(
            _op(node),
            names.get(node.name, node.name),
            tuple(_argument(argument, names) for argument in node.args),
            {key: _argument(value, names) for key, value in node.kwargs.items()},
            source_location(node),
            reasons.get(node.name),
        )
        for node in part.graph_module.graph.nodes
        if node.op not in ("placeholder", "output", "get_attr")
    )


def _op(node: fx.Node) -> str:
    return "getitem" if node.target is operator.getitem else str(node.target)


def _argument(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, fx.Node):
        return {"value": names.get(value.name, value.name)}
    if isinstance(value, (tuple, list)):
        return [_argument(item, names) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    return str(value)  # dtypes and the like; infinities and NaN, which JSON has no numbers for
