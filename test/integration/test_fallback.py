"""Nothing falls back silently: what a fallback is, who is told, what strict refuses, engines."""

import logging

import pytest
import torch
from parity import assert_same, check_inference, check_training, compile_model
from torch import nn

import mlir_npu
from mlir_npu import logs
from mlir_npu.lowering import compile_graph, fallback
from mlir_npu.lowering.report import collect


@pytest.fixture(autouse=True)
def nothing_told_yet(monkeypatch):
    monkeypatch.setattr(logs, "_told", set())


def warnings_of(caplog) -> list[str]:
    return [
        r.getMessage()
        for r in caplog.records
        if r.levelno == logging.WARNING and r.name.startswith("mlir_npu")
    ]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)

    def forward(self, x):
        return torch.relu(self.conv(x)), torch.special.bessel_j0(self.conv(x))


class Sinh(nn.Module):
    """Neither it nor its gradient, cosh, is for the NPU."""

    def forward(self, x):
        return torch.sinh(x)


X = torch.randn(1, 3, 24, 24)


def test_a_fallback_is_warned_about_once(caplog):
    """peers T4."""
    with caplog.at_level(logging.WARNING, logger="mlir_npu"), torch.no_grad():
        for _ in range(2):
            torch._dynamo.reset()
            compile_model(Net().eval())(X)
    (message,) = warnings_of(caplog)
    assert "mlir_npu runs 1 op of the inference graph on the host" in message
    assert "there is no NPU lowering for aten.special_bessel_j0.default" in message
    assert f"{__file__}:{Net.forward.__code__.co_firstlineno + 1}" in message


def test_an_op_without_lowering_is_warned_about_and_refused_by_strict(caplog):
    reason = "there is no NPU lowering for aten.special_bessel_j0.default"

    def program(x):
        return torch.special.bessel_j0(x * 2)

    with caplog.at_level(logging.WARNING, logger="mlir_npu"), torch.no_grad():
        compile_model(program)(torch.randn(80, 80))
    (message,) = warnings_of(caplog)
    assert reason in message
    torch._dynamo.reset()
    with pytest.raises(Exception, match=reason), torch.no_grad():
        compile_model(program, strict=True)(torch.randn(80, 80))


def test_full_offload_warns_of_nothing(caplog):
    with caplog.at_level(logging.WARNING, logger="mlir_npu"), torch.no_grad():
        compile_model(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval())(X)
    assert warnings_of(caplog) == []


def test_what_is_too_small_or_asked_for_is_no_fallback(caplog):
    small = nn.Sequential(nn.Conv2d(3, 8, 3), Sinh()).eval()
    with caplog.at_level(logging.WARNING, logger="mlir_npu"), torch.no_grad():
        compile_model(small, strict=True)(torch.randn(1, 3, 8, 8))
        compile_model(Net().eval(), strict=True, host_ops=["special_bessel_j0"])(X)
    assert warnings_of(caplog) == []


def test_strict_refuses_what_the_npu_should_take():
    with (
        pytest.raises(Exception, match="1 op would run on the host"),
        torch.no_grad(),
    ):
        compile_model(Net().eval(), strict=True)(X)
    double = nn.Conv2d(3, 8, 3).eval().double()
    with (
        pytest.raises(Exception, match="float64, and the NPU takes float32, bfloat16 and float16"),
        torch.no_grad(),
    ):
        compile_model(double, strict=True)(X.double())


def test_strict_training_lists_what_the_host_does():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), Sinh(), nn.Conv2d(16, 4, 3))
    allowed = ["sinh", "cosh"]
    check_training(model, X.clone(), options={"strict": True, "host_ops": allowed})
    with pytest.raises(Exception, match="there is no NPU lowering for aten.cosh"):
        compile_model(model, strict=True, host_ops=allowed[:1])(X).sum().backward()


def test_an_internal_error_loses_nothing(monkeypatch, caplog):
    def fail(part, options, parameters):
        raise KeyError("a bug")

    monkeypatch.setattr(compile_graph, "compile_region", fail)
    model = nn.Conv2d(3, 8, 3).eval()
    with caplog.at_level(logging.WARNING, logger="mlir_npu"), torch.no_grad():
        assert_same(compile_model(model)(X), model(X))
    (message,) = warnings_of(caplog)
    assert "internal error: KeyError: 'a bug'" in message
    with pytest.raises(Exception, match="npu_0 does not compile: internal error"), torch.no_grad():
        compile_model(nn.Conv2d(3, 8, 1).eval(), strict=True)(X)


def test_without_a_compiler_inductor_parts_run_in_eager(monkeypatch, caplog):
    import torch._inductor.codecache
    import torch._inductor.cpp_builder as cpp_builder

    def missing(*_):
        raise torch._inductor.exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)
    torch._inductor.codecache.FxGraphCache.clear()
    model = nn.Conv2d(3, 8, 3).eval()

    def program(x):
        return torch.special.bessel_j0(model(x)) + 0.123

    with caplog.at_level(logging.WARNING, logger="mlir_npu"), collect() as reports:
        with torch._inductor.config.patch(force_disable_caches=True):
            check_inference(program, X, options={"fallback": "inductor"})
            with (
                pytest.raises(Exception, match="does not compile with fallback='inductor'"),
                torch.no_grad(),
            ):
                compile_model(
                    lambda x: program(x) + 1,
                    fallback="inductor",
                    strict=True,
                    host_ops=["special_bessel_j0"],
                )(X)
    assert any(
        "not in inductor" in message and "InvalidCxxCompiler" in message
        for message in warnings_of(caplog)
    )
    host = [part for part in reports[0].parts if part.place == "host"]
    assert {part.engine for part in host} == {"eager"}
    assert all("InvalidCxxCompiler" in part.reason for part in host)


def test_an_unforeseen_error_of_a_host_engine_loses_nothing(monkeypatch, caplog):
    def fail(part, options):
        raise KeyError("a bug")

    monkeypatch.setattr(fallback, "compile_host_llvm", fail)
    with caplog.at_level(logging.WARNING, logger="mlir_npu"):
        check_inference(lambda x: torch.special.bessel_j0(x), X)
    assert any("internal error: KeyError" in message for message in warnings_of(caplog))


@pytest.mark.parametrize("dynamic", [False, True])
def test_training_with_inductor(dynamic):
    """peers T2: one AOTAutograd, whose backward may be dynamic too."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        nn.ConvTranspose2d(8, 4, 3),
        Sinh(),
    )
    with torch._dynamo.config.patch(assume_static_by_default=not dynamic):
        check_training(model, X.clone().requires_grad_(), options={"fallback": "inductor"})


def test_results_of_host_parts_have_the_strides_of_tracing():
    """peers S5: eager's kernel returns another layout than its meta function says."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.ops.aten.relu.default, (x,))
    graph.output((relu, x, None))
    x.meta["val"] = torch.empty(2, 3, 4, 5, device="meta").to(memory_format=torch.channels_last)
    relu.meta["val"] = torch.empty(2, 3, 4, 5, device="meta").to(memory_format=torch.channels_last)
    module = torch.fx.GraphModule({}, graph)
    part = mlir_npu.lowering.plan.Part("host_0", "host", module, ("x",), ("relu", "x"), 0, 0, 1)
    value = torch.randn(2, 3, 4, 5)
    result, same, none = fallback.compile_host_eager(part)(value)
    assert result.stride() == (60, 1, 15, 3) == same.stride() and none is None
    assert torch.equal(result, torch.relu(value)) and torch.equal(same, value)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.AdaptiveAvgPool2d((5, 3)), (1, 2, 4, 3)),
        (nn.AdaptiveAvgPool1d(5), (1, 2, 4)),
        (nn.Conv3d(2, 2, 2), (1, 2, 4, 4, 4)),
        (nn.ConvTranspose3d(2, 2, 2), (1, 2, 3, 3, 3)),
        (nn.BatchNorm2d(2), (2, 2, 3, 3)),
        (torch.norm, ()),
        (torch.norm, (0, 3)),
    ],
)
def test_calls_outside_of_the_npu_rules_are_no_internal_errors(model, shape):
    """Respellings for the NPU serve the host's LLVM too, which asks the same rules first."""
    x = torch.randn(shape, requires_grad=True)
    explained = mlir_npu.explain(model, x, train=True, options={"cache": False})
    reasons = [part.reason or "" for graph in explained.graphs for part in graph.parts]
    assert not [reason for reason in reasons if "internal error" in reason]
    assert len(explained.graphs) == 2


class Steps(nn.Module):
    """Slices with steps, read and written: their elements, and what is beyond the last."""

    def forward(self, x, values):
        y = torch.sin(x)
        y[:, 1::2] = values[:, ::3]
        y[:, :, -5:9:3] = 0
        return y, torch.cat([x, x], 1)[:, 2::5, 3:8:4].cos()


def test_numbers_in_a_captured_graph_are_no_internal_errors(caplog):
    class Counts(nn.Module):
        def forward(self, x):
            return x.sin() + (x.exp() > 1).sum().item()

    with torch.no_grad(), caplog.at_level(logging.WARNING, logger="mlir_npu"):
        x = torch.randn(3, 8)
        program = mlir_npu.capture(Counts(), x)
        assert_same(program(x.abs()), Counts()(x.abs()))
    assert not any("internal error" in message for message in warnings_of(caplog))


def test_slices_with_steps_are_no_internal_errors(caplog):
    inputs = (torch.randn(2, 7, 10), torch.randn(2, 8, 10))
    with caplog.at_level(logging.WARNING, logger="mlir_npu"):
        check_inference(Steps(), *inputs)
        torch._dynamo.reset()
        check_training(Steps(), *(x.requires_grad_() for x in inputs))
    assert not any("internal error" in message for message in warnings_of(caplog))
