"""Host parts with calls that LLVM does not take: those run in eager, the others stay compiled."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from mlir_npu.lowering.fallback import compile_host
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options


def host_part(function, *tensors):
    graph_module = make_fx(function, tracing_mode="fake")(*tensors)
    graph_module.graph.eliminate_dead_code()
    inputs = tuple(node.name for node in graph_module.graph.find_nodes(op="placeholder"))
    part = Part("host_0", "host", graph_module, inputs, (), 0, 0, 0)
    return compile_host(part, Options(fallback="llvm"))


def check(host, function, *tensors):
    for actual, expected in zip(host.call(*tensors), function(*tensors), strict=True):
        torch.testing.assert_close(actual, expected)
        assert actual.stride() == expected.stride()


def test_only_the_calls_that_need_it_run_in_eager():
    def attention(x, w, positions):
        scores = (F.gelu(x @ w) * 3).softmax(-1)
        best = scores.argmax(1)
        summed = scores.cumsum(0) * 2 + 1
        return scores, best, summed.relu(), summed.t(), x[positions] * 2 + 1

    tensors = torch.randn(64, 128), torch.randn(128, 32), torch.randint(0, 64, (10,))
    host = host_part(attention, *tensors)
    assert host.engine == "llvm and eager"
    assert "aten.index.Tensor" in host.reason
    check(host, attention, *tensors)


def test_views_that_are_returned_share_memory():
    def views(x):
        y = (x + 1).relu() * 2
        return y, y.view(-1), y.argmax(0)

    x = torch.randn(4, 6)
    host = host_part(views, x)
    assert host.engine == "llvm and eager"
    y, flat, _ = host.call(x)
    assert y.data_ptr() == flat.data_ptr()
    check(host, views, x)


def test_a_bad_index_is_eagers_error():
    def gather(x, positions):
        return (x[positions].exp() * 2 + 1,)

    x = torch.randn(4)
    host = host_part(gather, x, torch.tensor([1]))
    assert host.engine == "llvm and eager"
    with pytest.raises(IndexError, match="out of bounds"):
        host.call(x, torch.tensor([5]))


def written_where(x):
    y = (x.exp() * 2 + 1).clone()
    y[y > 1.5] = 0.5
    return (y.relu() * 3,)


def written_at_none(x):
    none = torch.zeros(0, dtype=torch.int64, device=x.device)
    return ((x + 1).exp().index_put((none,), x[none] * 2, accumulate=True).relu() * 3,)


def picked_from_one(x):
    return (x.exp()[torch.arange(3) - 3, None] * 2 + 1, x.sum()[None][torch.tensor(0)] * 3)


@pytest.mark.parametrize("function", [written_where, written_at_none, picked_from_one])
def test_positions_that_no_rule_of_the_npu_is_about(function, caplog):
    x = torch.randn(4)
    host = host_part(function, x)
    assert host.engine in ("eager", "llvm and eager")
    assert "aten.index" in host.reason
    assert not [r for r in caplog.records if r.name.startswith("mlir_npu")]
    check(host, function, x)


def test_a_single_call_is_not_worth_a_piece():
    def lone(x):
        return (x.relu().cumsum(0),)

    x = torch.randn(4, 6)
    host = host_part(lone, x)
    assert host.engine == "eager"
    assert "aten.cumsum" in host.reason
    check(host, lone, x)
