"""The benchmark: its tables of layers, its statistics, its document, one case from end to end.

Nothing here depends on how fast anything is.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import nn

from mlir_npu.benchmarks import __main__ as command
from mlir_npu.benchmarks import (
    engines,
    layers,
    models,
    results,
    run,
    statistics,
    suites,
    summary,
)
from mlir_npu.benchmarks.cases import QUICK, Case, select
from mlir_npu.benchmarks.layers import CLASSES, Convolution
from mlir_npu.benchmarks.run import run_case
from mlir_npu.benchmarks.tables import markdown, tables

# layers


def test_layers_are_distinct_and_every_class_has_some() -> None:
    found = layers.distinct()
    assert len(set(found)) == len(found)
    assert len({layer.name for layer in found}) == len(found)
    assert Counter(layer.kind for layer in found) == {
        "7x7 s2": 1,
        "3x3 s1": 17,
        "3x3 s2": 5,
        "1x1 s1": 44,
        "1x1 s2": 3,
        "depthwise s1": 6,
        "depthwise s2": 4,
        "long 1-D": 6,
    }
    assert tuple(dict.fromkeys(layer.kind for layer in found)) == CLASSES


@pytest.mark.parametrize(
    ("layer", "kind", "macs"),
    [
        (layers.square(3, 64, 224, 7, 2), "7x7 s2", 112 * 112 * 64 * 7 * 7 * 3),
        (layers.square(64, 64, 56, 3), "3x3 s1", 56 * 56 * 64 * 9 * 64),
        (layers.square(256, 512, 56, 1, 2), "1x1 s2", 28 * 28 * 512 * 256),
        (layers.depthwise(96, 112, 2), "depthwise s2", 56 * 56 * 96 * 9),
        (Convolution(3, 64, (224, 224), (3, 3), (2, 2)), "3x3 s2", 111 * 111 * 64 * 9 * 3),
        (next(layers.crepe()), "long 1-D", 256 * 128 * 512),
    ],
)
def test_class_and_work_of_a_layer(layer: Convolution, kind: str, macs: int) -> None:
    assert (layer.kind, layer.macs) == (kind, macs)
    built, x = models.layer(layer), torch.zeros(1, layer.inputs, *layer.size)
    assert built(x).shape == (1, layer.outputs, *layer.output_size)
    assert models.count_macs(built, x) == macs


class _Padded(nn.Module):
    """The same numbers from padding of the convolution's own, and from an op before it."""

    def __init__(self, shape: Convolution, *, apart: bool) -> None:
        super().__init__()
        top, bottom, left, right = shape.padding
        self.sides = (left, right, top, bottom) if apart else (0, 0, 0, 0)
        self.conv = nn.Conv2d(
            shape.inputs, shape.outputs, shape.kernel, shape.stride,
            padding=0 if apart else (top, left), groups=shape.groups,
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(nn.functional.pad(x, self.sides))


@pytest.mark.parametrize("apart", [False, True], ids=["own padding", "pad"])
@pytest.mark.parametrize(
    ("shape", "macs", "least"),
    [
        # A 3x3 kernel on 4x4 pixels has 4 of its 9 taps in the image at corners, 6 at edges.
        (layers.square(2, 5, 4, 3), 16 * 9 * 10, (4 * 4 + 8 * 6 + 4 * 9) * 10),
        (Convolution(1, 1, (4, 1), (3, 1), (2, 1), (1, 1, 0, 0)), 6, 5),
        (layers.depthwise(3, 1, 1), 27, 3),
    ],
    ids=["3x3", "strided", "depthwise"],
)
def test_work_without_padding(shape: Convolution, macs: int, least: int, apart: bool) -> None:
    model, x = _Padded(shape, apart=apart), torch.zeros(2, shape.inputs, *shape.size)
    assert models.count_macs(model, x) == 2 * macs
    assert models.count_least_macs(model, x) == 2 * least


@pytest.mark.parametrize("network", layers.NETWORKS)
def test_layers_are_those_of_the_built_network(network: str, monkeypatch) -> None:
    """Channels, kernel, stride, groups and result of every convolution, in any order.

    Paddings are left out: what one network pads in the convolution, another pads before it.
    """
    monkeypatch.setattr(models.zoo, "settle", nn.Module.eval)
    found: Counter = Counter()

    def note(module: nn.Conv2d, _: tuple, result: torch.Tensor) -> None:
        size = tuple(result.shape[2:])
        channels = (module.in_channels, module.out_channels)
        found[(*channels, module.kernel_size, module.stride, module.groups, size)] += 1

    with torch.device("meta"), torch.no_grad():
        model = models.NETWORKS[network]()
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                module.register_forward_hook(note)
        model(torch.empty(models.input_shape(network, 1)))
    assert found == Counter(
        (layer.inputs, layer.outputs, layer.kernel, layer.stride, layer.groups, layer.output_size)
        for layer in layers.NETWORKS[network]()
    )


def test_every_suite_has_cases_that_survive_json() -> None:
    for build in suites.SUITES.values():
        quick, whole = build(1, True), build(1, False)
        assert 0 < len(quick) <= len(whole)
        for case in whole:
            assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case
            assert set(case.engines) <= set(engines.ENGINES)
    assert {case.group for case in suites.layer_cases(1, True)} == set(CLASSES)


def test_filter_looks_at_suite_group_and_name() -> None:
    cases = suites.layer_cases(1, False)
    assert {case.group for case in select(cases, "Depthwise S2")} == {"depthwise s2"}
    assert select(cases, "networks/") == []


# statistics


def test_geometric_mean() -> None:
    assert statistics.geometric_mean([1.0, 4.0, 16.0]) == pytest.approx(4.0)
    assert math.isnan(statistics.geometric_mean([]))


def test_ratio_is_taken_within_rounds() -> None:
    """A machine that is ten times slower in one round changes the times, not the ratios."""
    ratio = statistics.speed([1.0, 10.0, 1.0, 2.0], [2.0, 20.0, 2.0, 3.0])
    assert ratio.median == 2.0
    assert (ratio.low, ratio.high) == (1.875, 2.0)


def test_ratios_settle_when_their_spread_is_small() -> None:
    assert statistics.is_settled([1.0] * 5, [[2.0] * 5], within=0.01)
    assert not statistics.is_settled([1.0] * 5, [[2.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]], within=0.01)


def test_exponent_of_a_power() -> None:
    assert statistics.exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)


# documents


def outcome(*values: float, **changes: object) -> dict:
    return {"values": list(values), "difference": 0.0, "tolerance": 1e-6, "notes": {}} | changes


@pytest.fixture
def document() -> dict:
    """Two layers, times in ms: 2x and 0.5x the best peer, which is another one each time."""
    cases = [
        Case("layers", name, "3x3 s1", ("mlir_npu", "eager", "onnxruntime"), 1, (1, 8, 8, 8),
             layer=suites.TINY_LAYER)
        for name in ("first", "second")
    ]  # fmt: skip
    timed = {
        "error": None,
        "load": 0.0,
        "macs": 1000,
        "least_macs": 900,
        "peak_gflops": 100.0,
        "copy_gbps": 10.0,
    }
    outcomes = [
        {
            "mlir_npu": outcome(1.0, 1.0, 2.0),
            "eager": outcome(2.0, 2.0, 4.0),
            "onnxruntime": outcome(4.0, 4.0, 8.0),
        },
        {
            "mlir_npu": outcome(4.0, 4.0),
            "eager": outcome(4.0, 4.0),
            "onnxruntime": outcome(2.0, 2.0),
        },
    ]
    return {
        "schema": results.SCHEMA,
        "machine": {"cpu": "a CPU", "cores": 1, "versions": {}},
        "effort": dataclasses.asdict(QUICK),
        "absent": {"openvino": "not installed"},
        "records": [
            {"case": case.to_json(), **timed, "engines": one}
            for case, one in zip(cases, outcomes, strict=True)
        ],
    }


def test_group_summary(document: dict) -> None:
    first, second = summary.comparisons(document, "layers", 1)
    assert (first.best_peer, second.best_peer) == ("eager", "onnxruntime")
    assert (first.over_best.median, second.over_best.median) == (2.0, 0.5)
    found = summary.summarise([first, second], peak=100.0)
    assert found.speeds == pytest.approx(
        {"mlir_npu": 1.0, "eager": math.sqrt(0.5), "onnxruntime": math.sqrt(0.5)}
    )
    assert found.over_group_best == pytest.approx(math.sqrt(2.0))
    assert (found.count, found.wins) == (2, 1)
    assert found.by_minimum == pytest.approx(1.0)


def test_a_good_document_has_no_problems(document: dict) -> None:
    results.check(document)
    assert results.problems(document) == results.failed_peers(document) == []
    by_class, by_layer = tables(document)
    assert "| 3x3 s1 | 2 |" in markdown(by_class)
    assert markdown(by_layer).splitlines()[4].startswith("| second | ONNX Runtime | 4.000 | 2.000")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), 0, "schema is 0"),
        (("records",), None, "document.records"),
        (("records", 0, "macs"), "many", "records[0].macs"),
        (("records", 0, "case", "no_such_key"), 1, "records[0].case"),
        (("records", 1, "engines", "eager", "values"), [], "values"),
        (("records", 1, "engines", "abacus"), {}, "no such engine"),
    ],
)
def test_schema_errors_say_where(document: dict, path: tuple, value: object, message: str) -> None:
    *parents, key = path
    table = document
    for parent in parents:
        table = table[parent]
    table[key] = value
    with pytest.raises(results.SchemaError) as caught:
        results.check(document)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"difference": 1.0}, "off by 1.00e+00"),
        ({"difference": math.nan}, "off by nan"),
        ({"values": [1e-6]}, "above the peak of 100.0"),
        ({"notes": {"host_conv_macs": 7}}, "on the host"),
    ],
)
def test_what_fails_a_run(document: dict, change: dict, message: str) -> None:
    document["records"][0]["engines"]["mlir_npu"] |= change
    (problem,) = results.problems(document)
    assert message in problem


def test_winograd_may_be_above_the_peak(document: dict) -> None:
    fast = {"values": [1e-6], "notes": {"winograd": True}}
    document["records"][0]["engines"]["mlir_npu"] |= fast
    assert results.problems(document) == []


def test_errors_of_ours_fail_a_run_and_those_of_peers_are_listed(document: dict) -> None:
    theirs = copy.deepcopy(document)
    theirs["records"][0]["engines"]["eager"] = {"error": "no memory"}
    assert results.problems(theirs) == []
    assert len(results.failed_peers(theirs)) == 1
    document["records"][0]["engines"]["mlir_npu"] = {"error": "no memory"}
    assert len(results.problems(document)) == 1


def test_engines_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.OpenVino, "packages", ("no_such_package",))
    assert engines.absent(("eager", "openvino")) == {"openvino": "not installed: no_such_package"}


# from end to end


def test_one_case_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, compiled = "mlir_npu", "mlir_npu_compile"
    wanted = ["--suite", "overhead", "--engine", ours, "--engine", compiled, "--engine", "eager"]
    brief = ["--few-rounds", "--threads", "1", "--output", str(tmp_path)]
    assert command.main([*wanted, *brief]) == 0
    printed = capsys.readouterr().out
    assert "openvino: " in printed

    document = json.loads((tmp_path / command.DATA).read_text())
    results.check(document)
    (record,) = document["records"]
    assert record["macs"] == 64 * 8 * 8 * 9
    assert record["peak_gflops"] > 0
    assert set(record["engines"]) == {ours, compiled, "eager"}
    assert all(record["engines"][name]["notes"]["regions"] == 1 for name in (ours, compiled))
    assert len(record["engines"]["eager"]["values"]) >= QUICK.min_rounds
    assert "microseconds per call" in (tmp_path / command.TEXT).read_text()

    assert command.main(["--show", str(tmp_path / command.DATA)]) == 0
    assert capsys.readouterr().out in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--filter no/such/case", "no case has 'no/such/case' in its name"),
        ("--list --filter no/such/case", "no case has 'no/such/case' in its name"),
        ("--show {}/none.json", "cannot show {}/none.json: "),
        ("--show {}/text", "cannot show {}/text: "),
        ("--show {}/empty.json", "cannot show {}/empty.json: document.schema: must be int"),
        ("--suite networks --engine mlir_npu_host", "none of the engines of these cases"),
        ("--suite overhead --output {}/text/folder", "cannot write to {}/text/folder: "),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("no JSON")
    (tmp_path / "empty.json").write_text("{}")
    given = [word.format(tmp_path) for word in arguments.split()]
    assert command.main(given) == command.REFUSED
    printed = capsys.readouterr()
    assert printed.err.startswith(f"scripts/benchmark: {message.format(tmp_path)}")
    assert printed.err.count("\n") == 1 and not printed.out


@pytest.mark.parametrize("threads", ["0", "-1", "two"])
def test_threads_are_positive(threads: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(["--list", "--threads", threads])
    assert left.value.code == command.REFUSED
    assert "threads" in capsys.readouterr().err


def test_an_interrupted_run_keeps_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second case is where somebody presses Ctrl-C."""
    calls = iter([{"error": "first"}])

    def measure(case: Case, *_: object) -> dict:
        if (outcome := next(calls, None)) is None:
            raise KeyboardInterrupt
        return {"case": case.to_json(), "load": 0.0, "engines": {}} | outcome

    monkeypatch.setattr(run, "run_case", measure)
    arguments = ["--suite", "networks", "--engine", "eager", "--output", str(tmp_path)]
    assert command.main(arguments) == command.INTERRUPTED
    assert f"are in {tmp_path / command.DATA}" in capsys.readouterr().err
    document = json.loads((tmp_path / command.DATA).read_text())
    results.check(document)
    assert len(document["records"]) == 1


def test_errors_are_shown_as_they_are(
    document: dict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brackets in them are not styles."""
    document["records"][0]["engines"]["mlir_npu"] = {"error": "no [bold] in [/usr/lib]"}
    document["records"][0]["engines"]["eager"] = {"error": "[inputs] of [/this]"}
    document["absent"] = {"openvino": "[here]"}
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert command.main(["--show", str(tmp_path / "run.json")]) == 1
    printed = capsys.readouterr().out
    for text in ("no [bold] in [/usr/lib]", "[inputs] of [/this]", "openvino: [here]"):
        assert text in printed


@pytest.mark.parametrize(
    ("kind", "engine"),
    [("compile", "mlir_npu"), ("memory", "mlir_npu"), ("memory", "eager")],
)
def test_a_case_that_takes_fresh_processes(kind: str, engine: str, document: dict) -> None:
    case = suites.overhead_cases(1, True)[0]
    case = dataclasses.replace(case, kind=kind, suite=kind, engines=(engine, "openvino"))
    record = run_case(case, QUICK, absent={"openvino": "not installed"})
    document["records"] = [record]
    results.check(document)
    assert list(record["engines"]) == [engine]
    if engine == "mlir_npu":  # whose regions may fail and run on the host
        assert record["engines"][engine]["notes"]["regions"] == 1
    assert results.problems(document) == []
    assert len(list(tables(document))) == 1


def test_a_process_that_dies_is_a_record() -> None:
    case = dataclasses.replace(suites.overhead_cases(1, True)[0], layer=None, network="none such")
    record = run_case(case, QUICK, absent={})
    assert "ended with code 1" in record["error"]
    assert "KeyError" in record["error"]


def test_pictures_of_a_run(document: dict, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from mlir_npu.benchmarks.picture import draw_bars, draw_curves

    assert draw_bars(document, tmp_path / "bars.png")
    assert (tmp_path / "bars.png").stat().st_size > 10_000
    assert not draw_bars(document | {"records": []}, tmp_path / "none.png")

    assert not draw_curves(document, tmp_path / "none.png")
    for size, record in enumerate(document["records"], 1):
        record["case"] |= {"suite": "scaling", "group": "images", "size": size}
    assert draw_curves(document, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000
