"""What depends on constants only is computed once, at compile time."""

import torch
from aten_graphs import aten, trace

from mlir_npu.lowering.fold_constants import MAX_ELEMENTS, fold_constants

X = torch.rand(2, 6)


def folded(function, *tensors):
    """(the graph with constants folded, the calls that are left in it)"""
    graph_module = trace(function, *tensors)
    fold_constants(graph_module)
    graph_module.graph.lint()
    graph_module.recompile()
    calls = [node.target for node in graph_module.graph.nodes if node.op == "call_function"]
    return graph_module, [target.overloadpacket.__name__ for target in calls]


def check(function, *tensors, calls):
    graph_module, found = folded(function, *tensors)
    assert found == calls
    torch.testing.assert_close(graph_module(*tensors), function(*tensors), rtol=0, atol=0)


def test_positions_are_numbers():
    def every_second(x):
        positions = (torch.arange(3) * 2.0 + 0.5).to(torch.int64)
        return aten.index(x, [None, positions])

    check(every_second, X, calls=["index"])


def test_a_constant_is_made_once_for_all_its_readers():
    def twice(x):
        mask = torch.ones(6).cumsum(0)
        return x + mask, x * mask

    check(twice, X, calls=["add", "mul"])


def test_shapes_of_inputs_are_enough_for_what_they_fill():
    check(lambda x: x + aten.zeros_like(x) + aten.full_like(x, 3), X, calls=["add", "add"])
    check(lambda x: x * aten.new_ones(x, [6]), X, calls=["mul"])


def test_filled_tensors_keep_their_layout():
    graph_module, _ = folded(lambda x: x + aten.ones_like(x), X.t())
    (constant,) = graph_module.graph.find_nodes(op="get_attr")
    assert getattr(graph_module, constant.target).stride() == X.t().stride()


def test_results_are_memory_of_their_own():
    """Each call of the graph returns a new tensor, so the calls that make it stay."""

    def grid(x):
        return torch.arange(6).view(2, 3), x + torch.arange(6)

    graph_module, calls = folded(grid, X)
    assert calls == ["arange", "view", "add"]
    first, second = graph_module(X)[0], graph_module(X)[0]
    assert first.data_ptr() != second.data_ptr()


def test_random_numbers_stay():
    _, calls = folded(lambda x: x + aten.rand([6]), X)
    assert calls == ["rand", "add"]


def test_large_constants_stay():
    _, calls = folded(lambda x: x + aten.arange(MAX_ELEMENTS + 1)[:6], X)
    assert calls[0] == "arange"


def test_what_would_raise_raises_in_the_run():
    graph_module = trace(lambda x: x + torch.arange(6), X)
    (node,) = [n for n in graph_module.graph.nodes if str(n.target) == "aten.arange.default"]
    node.args = (-1,)
    fold_constants(graph_module)
    assert node in graph_module.graph.nodes
