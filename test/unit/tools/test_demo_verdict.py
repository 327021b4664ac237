"""The demo ends with an error, and says why, when anything is not as it should be."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from mlir_npu import Explanation
from mlir_npu.lowering.report import GraphReport, PartReport
from mlir_npu.scripts import run_demo
from mlir_npu.scripts.networks import zoo
from mlir_npu.scripts.networks.comparison import Difference
from mlir_npu.scripts.networks.trial import Times, Tone, Trial, time_in_turn


def explanation(*engines: str) -> Explanation:
    """Parts of 100 multiply-accumulates each, all of convolutions, one for each engine."""
    filled = {field.name: () for field in dataclasses.fields(PartReport)}
    counts = {"node_count": 3, "macs": 100, "conv_macs": 100}
    parts = tuple(
        PartReport(**filled | counts | {"name": f"part_{i}", "engine": engine, "reason": None})
        for i, engine in enumerate(engines)
    )
    graph = {field.name: () for field in dataclasses.fields(GraphReport)}
    report = GraphReport(**graph | {"kind": "inference", "parts": parts, "source": ""})
    return Explanation((report,), breaks=(), result=None)


GOOD = Trial(
    network=zoo.RESNET18,
    placement=explanation("npu", "npu"),
    difference=Difference(largest=1e-6, tolerance=1e-5),
    compile_seconds=1.0,
    eager=Times(1.0, 2.0),
    ours=Times(0.5, 1.0),
    tones=(Tone(440.0, 441.0),),
)
BAD = {
    "differs from eager by 1.00e-03": {"difference": Difference(1e-3, 1e-5)},
    "differs from eager by nan": {"difference": Difference(float("nan"), 1e-5)},
    "100 of 200 multiply-accumulates of convolutions ran on the host": {
        "placement": explanation("npu", "eager")
    },
    "needs 3 NPU regions, at most 2": {"placement": explanation("npu", "npu", "npu")},
    "takes 440 Hz for 446.00 Hz, +23.4 cents off": {"tones": (Tone(440.0, 446.0),)},
    "takes 440 Hz for nan Hz": {"tones": (Tone(440.0, float("nan")),)},
}


def test_a_good_trial_has_no_problems() -> None:
    assert GOOD.problems() == []


@pytest.mark.parametrize("text", BAD)
def test_a_bad_trial_says_what_is_wrong(text: str) -> None:
    (problem,) = dataclasses.replace(GOOD, **BAD[text]).problems()
    assert problem.startswith(text)


@pytest.mark.parametrize("text", [None, *BAD])
def test_exit_code_and_output(
    text: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = dataclasses.replace(GOOD, **BAD[text]) if text else GOOD
    monkeypatch.setattr(run_demo, "try_network", lambda *arguments, **keywords: trial)
    assert run_demo.main(["--network", "resnet-18"]) == (1 if text else 0)
    output = capsys.readouterr().out
    assert (f"FAILED: ResNet-18 {text}" in output) if text else ("FAILED" not in output)


def test_shares_are_rounded_down() -> None:
    assert run_demo.percent(999_999, 1_000_000) == "99.9 %"
    assert run_demo.percent(5, 5) == "100 %"
    assert run_demo.percent(0, 0) == "-"


def test_both_are_timed_equally_often() -> None:
    calls = []
    first, second = time_in_turn(lambda: calls.append("a"), lambda: calls.append("b"), 0.0)
    assert calls == ["a", "b"] * (len(calls) // 2)
    assert 0 <= first.least <= first.median and 0 <= second.least <= second.median


def test_eager_itself_is_within_tolerance_of_itself_in_double() -> None:
    from mlir_npu.scripts.networks import small
    from mlir_npu.scripts.networks.comparison import compare

    model, images = small.vgg().eval(), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        single, double = model(images), model.double()(images.double()).float()
    assert compare(model, single, double).acceptable
    assert not compare(model, single, double * (1 + 1e-4)).acceptable
