"""Views among the results of a host part: what is compiled, and what comes out around it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from aten_graphs import trace

from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.view_results import ViewResults, take_out_views

aten = torch.ops.aten
X = torch.arange(12.0).reshape(4, 3) - 5


def part_of(function: Callable, *arguments: torch.Tensor) -> Part:
    graph_module = trace(lambda *inputs: tuple(function(*inputs)), *arguments)
    graph = graph_module.graph
    inputs = tuple(node.name for node in graph.find_nodes(op="placeholder"))
    outputs = tuple(node.name for node in graph.output_node().args[0])
    return Part("host_0", "host", graph_module, inputs, outputs, 0, 0, 1)


def compiled_calls(found: ViewResults) -> list[str]:
    nodes = found.compiled.graph_module.graph.nodes
    return [node.target.overloadpacket.__name__ for node in nodes if node.op == "call_function"]


def run(found: ViewResults, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Compiled code returns memory of its own."""

    def compiled(*inputs):
        return [result.clone() for result in found.compiled.graph_module(*inputs)]

    return found.around(compiled)(*arguments)


def test_results_with_memory_of_their_own_stay() -> None:
    assert take_out_views(part_of(lambda x: (aten.relu(x), aten.neg(x)), X)) is None


def test_the_only_view_of_a_computed_value_stays() -> None:
    assert take_out_views(part_of(lambda x: (aten.t(aten.relu(x)),), X)) is None


def test_an_input_that_is_returned_stays() -> None:
    assert take_out_views(part_of(lambda x: (x, aten.relu(x)), X)) is None


def test_views_of_an_input() -> None:
    found = take_out_views(part_of(lambda x: (*aten.split(x, 2), aten.relu(x)), X))
    assert compiled_calls(found) == ["relu"]
    top, bottom, positive = run(found, X)
    assert torch.equal(top, X[:2]) and torch.equal(bottom, X[2:])
    assert top.untyped_storage()._cdata == X.untyped_storage()._cdata
    assert torch.equal(positive, X.relu())


def test_a_value_and_its_view() -> None:
    def function(x):
        y = aten.relu(x)
        return aten.select(aten.t(y), 0, 1), y

    found = take_out_views(part_of(function, X))
    assert compiled_calls(found) == ["relu"]
    column, y = run(found, X)
    assert torch.equal(y, X.relu()) and torch.equal(column, y[:, 1])
    assert column.untyped_storage()._cdata == y.untyped_storage()._cdata


def test_two_views_of_a_value_that_is_not_returned() -> None:
    def function(x):
        y = aten.neg(x)
        return aten.t(y), aten.select(y, 0, 0)

    first, second = run(take_out_views(part_of(function, X)), X)
    assert torch.equal(first, -X.t()) and torch.equal(second, -X[0])
    assert first.untyped_storage()._cdata == second.untyped_storage()._cdata


def test_nothing_but_views() -> None:
    found = take_out_views(part_of(lambda x: (aten.t(x), aten.select(x, 0, 1)), X))
    assert found.is_all
