"""Options do what they say: host_ops, strict, dump_dir, threads, fallback, target; no lost work."""

import logging
import re
import subprocess
import sys

import pytest
import torch
from parity import assert_same, check_inference, compile_model
from torch import nn

import mlir_npu
from mlir_npu.lowering import compile_graph


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3)).eval()


X = torch.randn(1, 3, 16, 16)


def test_options_reach_the_backend_and_are_checked():
    """peers T3."""
    with pytest.raises(Exception, match="did you mean 'fallback'"):
        compile_model(network(), falback="eager")(X)


def test_host_ops_split_the_region():
    explanation = mlir_npu.explain(network(), X, options={"host_ops": ["aten.relu"]})
    assert explanation.regions == 2
    assert any('host_ops="aten.relu"' in r.reason for r in explanation.graphs[0].rejections)


def test_strict_names_what_would_run_on_the_host():
    conv = nn.Conv2d(3, 64, 3)

    def model(x):
        return torch.sinh(conv(x))

    with (
        pytest.raises(Exception, match="strict=True, and 1 op would run on the host") as error,
        torch.no_grad(),
    ):
        compile_model(model, strict=True)(X)
    assert "there is no NPU lowering for aten.sinh.default" in str(error.value)


def test_strict_accepts_writes_to_inputs():
    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 64, 3)
            self.register_buffer("last", torch.zeros(1, 64, 14, 14))

        def forward(self, x):
            y = self.conv(x)
            self.last.copy_(y[:, :, :14, :14])
            return y.relu()

    model = Remembers().eval()
    with torch.no_grad():
        compile_model(model, strict=True)(X)
        assert_same(model.last, model.conv(X)[:, :, :14, :14].contiguous())


def test_strict_accepts_what_the_npu_runs_and_what_host_ops_allow():
    with torch.no_grad():
        model = network()
        assert_same(compile_model(model, strict=True)(X), model(X))
        assert_same(compile_model(model, strict=True, host_ops=["relu"])(X), model(X))


@pytest.mark.parametrize("fallback", ["llvm", "inductor", "eager"])
def test_fallbacks_agree(fallback):
    """peers T2: one AOTAutograd only, also with Inductor for the rest."""
    model = network()
    check_inference(
        lambda x: torch.softmax(torch.cos(model(x)).flatten(1), 1),
        X,
        options={"fallback": fallback},
    )


def test_dump_dir_holds_ir_that_npu_opt_reads(tmp_path):
    with torch.no_grad():
        compile_model(network(), dump_dir=str(tmp_path))(X)
    files = sorted(tmp_path.glob("**/*.mlir"))
    names = [file.stem.split("_", 1)[1] for file in files]
    assert names[0] == "import" and "stage" in names and names[-1] == "llvm"
    for file in files:
        command = [
            sys.executable,
            "-m",
            "mlir_npu.scripts.npu_opt",
            str(file),
            "--pass-pipeline=builtin.module(cse)",
        ]
        assert subprocess.run(command, capture_output=True).returncode == 0, file
    assert "npu_0(" in (tmp_path / "inference_0.py").read_text()


def test_graphs_do_not_overwrite_each_others_dumps(tmp_path):
    for model in (network().train(), nn.Conv2d(3, 8, 1)):
        compile_model(model, dump_dir=str(tmp_path))(X).sum().backward()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{kind}_{number}{suffix}"
        for kind in ("forward", "backward")
        for number in (0, 1)
        for suffix in ("", ".py")
    )
    assert (tmp_path / "forward_0" / "npu_0" / "region.py").read_text() != (
        tmp_path / "forward_1" / "npu_0" / "region.py"
    ).read_text()
    assert "def forward(args):" in (tmp_path / "forward_1.py").read_text()


@pytest.mark.parametrize("threads", [1, 2])
def test_num_threads(threads):
    model = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()).eval()
    check_inference(model, torch.randn(1, 16, 56, 56), options={"num_threads": threads})


@pytest.mark.parametrize("target", ["host", "edge", "small"])
def test_every_target_computes_the_same(target):
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, groups=16),
        nn.Conv2d(16, 8, 1),
    ).eval()
    check_inference(model, X, options={"target": target})


def test_what_does_not_fit_runs_on_the_host_and_says_so(caplog):
    model = network()
    with caplog.at_level(logging.WARNING, logger="mlir_npu"), torch.no_grad():
        explanation = mlir_npu.explain(model, X, options={"target": "nano"})
        assert_same(explanation.result, model(X))
    assert explanation.regions == 0
    (part,) = explanation.graphs[0].parts
    for text in (part.reason, caplog.text):
        assert re.search(r"conv2d kernel '\w+' does not fit: ", text)
        assert re.search(r"needs \d+ of 256 bytes of sram; ", text)
        assert re.search(r"largest buffers: argument \d+ \(128 bytes\)", text)
    assert "npu-opt" in caplog.text


def test_what_does_not_fit_is_an_error_with_strict_unless_memories_are_infinite():
    model = network()
    with torch.no_grad(), pytest.raises(Exception, match=r"StrictError.* needs \d+ of 256 bytes"):
        compile_model(model, target="nano", strict=True)(X)
    torch._dynamo.reset()
    with torch.no_grad():
        endless = compile_model(model, target="nano", strict=True, schedule="untiled")
        assert_same(endless(X), model(X))


@pytest.mark.parametrize("schedule", ["serial", "untiled"])
def test_every_schedule_computes_the_same(schedule):
    model = nn.Sequential(network(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=8)).eval()
    check_inference(model, X, options={"target": "small", "schedule": schedule})


def test_a_failed_region_loses_nothing(monkeypatch, caplog):
    def fail(part, options, parameters):
        raise mlir_npu.RegionCompileError(
            f"a fault of {test_a_failed_region_loses_nothing.__name__}", "npu-opt x.mlir"
        )

    monkeypatch.setattr(compile_graph, "compile_region", fail)
    model = network()
    with caplog.at_level(logging.WARNING, logger="mlir_npu"), torch.no_grad():
        assert_same(compile_model(model)(X), model(X))
        torch._dynamo.reset()
        compile_model(model)(X)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "to reproduce: npu-opt x.mlir" in warnings[0].getMessage()


def test_a_failed_region_raises_with_strict(monkeypatch):
    def fail(part, options, parameters):
        raise mlir_npu.RegionCompileError("a fault")

    monkeypatch.setattr(compile_graph, "compile_region", fail)
    with pytest.raises(Exception, match="npu_0 does not compile: a fault"), torch.no_grad():
        compile_model(network(), strict=True)(X)
