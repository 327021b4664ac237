"""mode="max-autotune": the same results, kernels measured once, and a report that says so."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap

import pytest
import torch
from parity import assert_same, compile_model
from torch import nn

import mlir_npu
from mlir_npu.lowering import autotune
from mlir_npu.lowering.report import collect
from mlir_npu.runtime.object_cache import VARIABLE
from mlir_npu.runtime.tuning import Tuning


class Net(nn.Module):
    """A convolution that may be Winograd's, one that may not, and what is too small to measure."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 32, 1)
        self.head = nn.Linear(32, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.second(self.first(x).relu()).sigmoid().mean((2, 3)))


def image() -> torch.Tensor:
    return torch.randn(1, 16, 20, 20)


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(autotune, "_known", {})


def tuning_of(reports) -> Tuning:
    ((part,),) = (report.regions for report in reports)
    return part.tuning


def check(model, x, **options):
    torch._dynamo.reset()
    with torch.no_grad(), collect() as reports:
        assert_same(compile_model(model, **options)(x), model(x))
    return tuning_of(reports)


def test_results_are_the_same_and_kernels_are_measured_once():
    model, x = Net().eval(), image()
    with torch.no_grad(), collect() as reports:
        compiled = torch.compile(model, backend="mlir_npu", mode="max-autotune")
        assert_same(compiled(x), model(x))
    first = tuning_of(reports)
    assert first.measured == len(first.kernels) >= 3
    assert first.reason is None
    again = check(model, x, autotune=True)  # the region is in the cache
    others = check(Net(11).eval(), x, autotune=True)  # another region of the same kernels
    for known in (again, others):
        assert known.measured == 0
        assert {k.name: k.answer for k in known.kernels} == {
            k.name: k.answer for k in first.kernels
        }
    assert "all known from before" in str(again)


def test_without_a_cache_kernels_are_known_to_the_process(tmp_path):
    model, x = Net().eval(), image()
    assert check(model, x, autotune=True, cache=False).measured > 0
    assert check(model, x, autotune=True, cache=False).measured == 0
    kept = [entry.read_bytes() for entry in (tmp_path / "cache").glob("*/*.bin")]
    assert not any(b"chosen" in contents for contents in kept)


PROGRAM = textwrap.dedent("""
    import torch, mlir_npu
    from torch import nn
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(16, 16, 3), nn.Tanh()).eval()
    found = mlir_npu.explain(model, torch.randn(1, 16, 40, 40), options={"autotune": True})
    (tuning,) = (part.tuning for part in found.graphs[0].regions)
    print(len(tuning.kernels), tuning.measured, tuning.threads)
    """)


def run() -> list[int]:
    """Choices, how many were measured, and for how many threads."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ.copy(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_the_next_process_measures_nothing():
    choices, measured, _ = run()
    assert choices == measured > 0
    assert run() == [choices, 0, 1]


def test_the_report_says_what_was_tuned():
    model, x = Net().eval(), image()
    explanation = mlir_npu.explain(model, x, options={"autotune": True})
    ((part,),) = (graph.regions for graph in explanation.graphs)
    text = str(explanation)
    assert f"npu_0: {len(part.tuning.kernels)} choices tuned for 1 thread" in text
    for changed in part.tuning.changed:
        assert changed.answer.gain > 1
        assert f"{changed.answer.gain:.2f} times as fast" in text
    assert mlir_npu.explain(model, x).graphs[0].regions[0].tuning is None


def test_captured_programs_are_tuned(tmp_path):
    model, x = Net().eval(), image()
    options = {"autotune": True, "dump_dir": str(tmp_path / "dump")}
    program = mlir_npu.capture(model, x, options=options)
    with torch.no_grad():
        assert_same(program(x), model(x))
    assert tuning_of(program.explanation.graphs).measured > 0


def test_training_is_tuned():
    model, x = Net(), image()
    explanation = mlir_npu.explain(model, x, options={"autotune": True}, train=True)
    parts = [part for graph in explanation.graphs for part in graph.regions]
    assert parts and all(part.tuning.kernels for part in parts if part.macs > 500_000)


def test_winograd_that_is_forbidden_stays_so(tmp_path):
    model, x = nn.Conv2d(32, 32, 3).eval(), torch.randn(1, 32, 40, 40)
    tuning = check(model, x, autotune=True, winograd=False, dump_dir=str(tmp_path / "dump"))
    assert tuning.kernels and not any("Winograd" in kernel.name for kernel in tuning.kernels)
    assert "winograd" not in "".join(p.read_text() for p in tmp_path.rglob("*_allocate.mlir"))


def test_accelerators_have_nothing_to_measure(caplog, monkeypatch):
    monkeypatch.setattr("mlir_npu.logs._told", set())
    model, x = Net().eval(), image()
    with caplog.at_level(logging.WARNING, "mlir_npu.autotune"):
        tuning = check(model, x, autotune=True, target="edge")
    assert not tuning.kernels
    assert "'edge' is an accelerator" in tuning.reason
    assert "max-autotune' changes nothing" in caplog.text


def test_a_faulty_tuner_costs_nobody_the_region(monkeypatch, caplog):
    monkeypatch.setattr(autotune, "run_apart", lambda jobs: [RuntimeError("no worker")] * len(jobs))
    with caplog.at_level(logging.WARNING, "mlir_npu.autotune"):
        tuning = check(Net().eval(), image(), autotune=True)
    assert tuning.kernels == ()
    assert "no worker" in caplog.text
