"""The report says what ran where, why not, and where the graph breaks."""

import pytest
import torch
from torch import nn

import mlir_npu


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.other = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        print("between")  # the graph breaks here
        return torch.special.bessel_j0(self.other(y))


@pytest.fixture(scope="module")
def explanation():
    return mlir_npu.explain(Broken().eval(), torch.randn(1, 3, 16, 16))


def test_regions_and_macs(explanation):
    assert explanation.regions == 2
    assert (
        explanation.conv_macs
        == explanation.npu_conv_macs
        == 3 * 9 * 8 * 14 * 14 + 8 * 9 * 8 * 12 * 12
    )
    assert explanation.host_nodes == 1


def test_the_break_names_the_users_line(explanation):
    (graph_break,) = explanation.breaks
    assert graph_break.location.startswith(__file__)
    assert 'print("between")' in graph_break.line


def test_rejections_name_op_reason_and_line(explanation):
    (rejection,) = explanation.graphs[1].rejections
    assert rejection.op.startswith("aten.special_bessel_j0")
    assert rejection.location.startswith(__file__)
    assert len(rejection.reason) > 10


def test_text_holds_everything(explanation):
    text = str(explanation)
    for part in (
        "2 NPU regions",
        "1 graph break",
        "npu_0",
        "bessel_j0",
        "def inference(args):",
        "convolution",
    ):
        assert part in text


def test_backward_graphs_are_reported():
    explanation = mlir_npu.explain(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), torch.randn(1, 3, 16, 16), train=True
    )
    assert [graph.kind for graph in explanation.graphs] == ["forward", "backward"]


def test_explain_leaves_gradients_alone():
    model = nn.Conv2d(3, 8, 3)
    mlir_npu.explain(model, torch.randn(1, 3, 16, 16), train=True)
    assert model.weight.grad is None


def test_explain_many_times():
    model, x = nn.Conv2d(3, 8, 3).eval(), torch.randn(1, 3, 16, 16)
    assert {mlir_npu.explain(model, x).regions for _ in range(10)} == {1}


def loop(x):
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()  # in a loop, so Dynamo cannot go on behind it
    return x


def test_functions_that_dynamo_gives_up_are_breaks():
    explanation = mlir_npu.explain(loop, torch.ones(4))
    (graph_break,) = explanation.breaks
    assert graph_break.location.startswith(__file__)
    assert graph_break.line.startswith("torch._dynamo.graph_break()")
    assert "the whole function runs uncompiled" in graph_break.reason
    assert explanation.graphs == ()
    assert "0 graphs, 1 graph break, 0 NPU regions" in str(explanation)


def test_a_break_inside_of_a_call_is_told_once():
    def inner(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    explanation = mlir_npu.explain(lambda x: inner(x * 3) + 1, torch.ones(4))
    assert len(explanation.breaks) == 1


def test_compiled_models_and_closures():
    model, x = nn.Conv2d(3, 8, 3).eval(), torch.randn(1, 3, 16, 16)
    assert mlir_npu.explain(torch.compile(model, backend="mlir_npu"), x).regions == 1
    assert mlir_npu.explain(torch.compile(lambda v: model(v), backend="eager"), x).regions == 1
    kinds = [graph.kind for graph in mlir_npu.explain(lambda v: model(v), x, train=True).graphs]
    assert kinds == ["forward", "backward"]
    assert model.weight.grad is None


def test_bad_options_are_refused_before_anything_runs():
    with pytest.raises(mlir_npu.OptionsError, match="did you mean 'inductor'"):
        mlir_npu.explain(lambda: pytest.fail("ran"), options={"fallback": "inducter"})


def test_the_name_means_the_function_however_it_is_imported():
    import mlir_npu.explanation

    assert mlir_npu.explain is mlir_npu.explanation.explain


def test_text_of_parts(explanation):
    text = str(explanation)
    assert "and 2 parameters" in text, "weights are counted, not listed"
    assert "-> relu: float32[1, 8, 14, 14]" in text.replace("\n", " ") or "-> relu:" in text
    assert "host: eager, because" in text
    assert "33.8 %" in text, "share of the multiply-accumulates"
    tables = text.split("# graph 0, as Python")[0]
    assert max(map(len, tables.splitlines())) <= 120


def test_views_that_the_host_makes_have_a_reason():
    conv = nn.Conv2d(3, 8, 3).eval()
    explanation = mlir_npu.explain(lambda x: conv(x)[:, :6], torch.randn(1, 3, 16, 16))
    (rejection,) = explanation.graphs[0].rejections
    assert rejection.op == "aten.slice.Tensor" and "it is a view" in rejection.reason
