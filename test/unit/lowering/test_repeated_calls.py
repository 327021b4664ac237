"""Calls that are copied from earlier ones become the same nodes as those that are traced."""

from __future__ import annotations

import pytest
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from mlir_npu.lowering import repeated_calls
from mlir_npu.lowering.decompositions import REGION_DECOMPOSITIONS
from mlir_npu.lowering.repeated_calls import RepeatedCalls
from mlir_npu.lowering.retrace import retrace

aten = torch.ops.aten


def _norm(x, n, *, training=False, eps=1e-5, dtype=torch.float32):
    weight, bias, mean, var = (torch.empty(n, dtype=dtype) for _ in range(4))
    if training:
        call = aten._native_batch_norm_legit_functional.default
        return call(x, weight, bias, mean, var, True, 0.1, eps)
    return aten._native_batch_norm_legit_no_training.default(x, weight, bias, mean, var, 0.1, eps)


def _captured(function, *inputs: torch.Tensor) -> fx.GraphModule:
    with FakeTensorMode():
        fakes = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) for x in inputs]
        return make_fx(function)(*fakes)


def _text(graph_module: fx.GraphModule) -> list[tuple]:
    def described(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return value.dtype, tuple(value.shape), value.stride(), value.storage_offset()
        return [described(one) for one in value] if isinstance(value, (tuple, list)) else value

    return [
        (
            *(node.name, node.op, str(node.target), str(node.args), str(node.kwargs)),
            *(described(node.meta.get("val")), node.meta.get("stack_trace"), sorted(node.meta)),
        )
        for node in graph_module.graph.nodes
    ]


@pytest.fixture
def repeats(monkeypatch) -> list[str]:
    """The calls with tensors that were copied."""
    copied = []
    repeat = repeated_calls._Recorded.repeat

    def noted(self, call):
        if call.tensors:
            copied.append(str(call.key[0]))
        return repeat(self, call)

    monkeypatch.setattr(repeated_calls._Recorded, "repeat", noted)
    return copied


def _check_same(graph_module: fx.GraphModule, monkeypatch) -> None:
    copied = _text(retrace(graph_module, REGION_DECOMPOSITIONS).graph_module)
    monkeypatch.setattr(RepeatedCalls, "call_function", fx.Interpreter.call_function)
    assert copied == _text(retrace(graph_module, REGION_DECOMPOSITIONS).graph_module)


def _norms(x, *arguments):
    """Two of each kind, on what the other made."""
    for one in arguments:
        for _ in range(2):
            x = _norm(x, x.shape[1], **one)[0]
    return x


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_normalizations(training, dtype, repeats, monkeypatch):
    kinds = [{"training": training, "eps": eps, "dtype": dtype} for eps in (1e-5, 1e-3)]
    graph_module = _captured(lambda x: _norms(x, *kinds), torch.randn(2, 3, 5, 5, dtype=dtype))
    _check_same(graph_module, monkeypatch)
    assert len([name for name in repeats if "batch_norm" in name]) == 2  # one of each eps


def test_what_differs_is_traced(repeats, monkeypatch):
    def function(x):
        other = aten.convolution.default(
            *(x, torch.empty(3, 3, 1, 1), None, [2, 2], [0, 0], [1, 1], False, [0, 0], 1)
        )
        last = aten.permute.default(aten.clone.default(x), [0, 1, 3, 2])
        strided = aten.add.Tensor(last, 1.0)
        plain = aten.add.Tensor(x, 1.0)
        return (
            *(_norm(x, 3)[0], _norm(other, 3)[0], _norm(x, 3, training=True)[0]),
            *(strided, plain, aten.add.Tensor(x, 1), aten.add.Tensor(x, -0.0)),
            *(aten.add.Tensor(x, 0.0), aten.add.Tensor(x, x), aten.add.Tensor(x, plain)),
        )

    graph_module = _captured(function, torch.randn(2, 3, 6, 6))
    _check_same(graph_module, monkeypatch)
    assert repeats == []


def test_views_and_constants_are_traced(repeats, monkeypatch):
    """Whether tensors share memory, and what is known of their contents, is kept."""

    def function(x):
        scale = torch.tensor(2.0)
        views = [aten.view.default(x, [2, 18]) for _ in range(2)]
        products = [aten.mul.Tensor(x, scale) for _ in range(2)]
        return *(aten.relu.default(view) for view in views), *products

    graph_module = _captured(function, torch.randn(2, 3, 6))
    _check_same(graph_module, monkeypatch)
    assert set(repeats) <= {"aten.relu.default", "aten.mul.Tensor"}


def test_calls_with_several_results(repeats, monkeypatch):
    def function(x):
        pairs = [aten.max_pool2d_with_indices.default(x, [2, 2], [2, 2]) for _ in range(3)]
        return tuple(aten.neg.default(one) for pair in pairs for one in pair)

    graph_module = _captured(function, torch.randn(2, 3, 6, 6))
    _check_same(graph_module, monkeypatch)
    assert repeats.count("aten.max_pool2d_with_indices.default") == 2


def test_symbolic_sizes_are_never_copied(repeats):
    """As no size may be taken for a constant."""
    inner = _captured(lambda x: aten.relu.default(aten.relu.default(x)), torch.randn(2, 3))

    def run(x):
        return RepeatedCalls(inner).run(x)

    traced = make_fx(run, tracing_mode="symbolic")(torch.randn(4, 3))
    assert repeats == []
    assert [n.target for n in traced.graph.find_nodes(op="call_function", target=aten.relu.default)]
    x = torch.randn(7, 3)
    assert torch.equal(traced(x), x.relu())


def test_writes_are_never_copied(repeats):
    inner = _captured(lambda x: aten.relu.default(x), torch.randn(2, 3))
    (node,) = inner.graph.find_nodes(op="call_function", target=aten.relu.default)
    node.target = aten.relu_.default

    def run(x):
        calls = RepeatedCalls(inner)
        copies = [aten.clone.default(x) for _ in range(2)]
        return [calls.run(copy) for copy in copies]

    with FakeTensorMode():
        traced = make_fx(run)(torch.empty(2, 3))
    assert repeats == []
    assert len(traced.graph.find_nodes(op="call_function", target=aten.relu_.default)) == 2


def test_a_graph_without_inputs(repeats, monkeypatch):
    def function():
        ones = [aten.full.default([2, 3], 1.0) for _ in range(2)]
        return tuple(aten.relu.default(one) for one in ones)

    _check_same(_captured(function), monkeypatch)
    assert repeats == ["aten.relu.default"]
