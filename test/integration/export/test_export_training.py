"""Exported programs with gradients, run by a C program, against eager."""

from __future__ import annotations

import copy
import filecmp
from pathlib import Path

import pytest
import torch
from c_program import TwoRegions, needs_compiler, read_plan, results, run
from jsonschema import Draft202012Validator
from test_export_plan import SCHEMA, check_references
from torch import nn
from torch.utils import _pytree as pytree

import mlir_npu

pytestmark = needs_compiler


def check(model, *inputs, folder: Path, threads: int = 1, **options) -> dict:
    """Export for training, run forward and backward in C, and compare outputs and gradients of
    inputs and parameters with eager. Returns the plan."""
    theirs = copy.deepcopy(model)
    path = mlir_npu.capture(model, *inputs, train=True, options=options).export(folder)
    plan = read_plan(path)
    Draft202012Validator(SCHEMA).validate(plan)
    check_references(plan, folder)

    given = [leaf.detach().clone().requires_grad_(leaf.requires_grad)
             for leaf in inputs if isinstance(leaf, torch.Tensor)]  # fmt: skip
    names = [entry["value"] for entry in plan["inputs"] if entry["value"] is not None]
    expected = pytree.tree_leaves(theirs(*given))
    entries = plan["outputs"]
    tangents: dict[str, torch.Tensor] = {}
    pairs = []
    for entry, output in zip(entries, expected, strict=True):
        if "tangent" in entry:
            pairs.append((output, torch.randn_like(output)))
            of_others = tangents.get(entry["tangent"], torch.zeros(()))
            tangents[entry["tangent"]] = of_others + pairs[-1][1]  # outputs that are one value
    torch.autograd.backward([o for o, _ in pairs], [t for _, t in pairs])

    found = run(path, dict(zip(names, inputs)) | tangents, threads=threads)
    for ours, output in zip(results(path, found), expected, strict=True):
        _close(ours, output.detach())
    leaves = dict(theirs.named_parameters())
    leaves |= {entry["name"]: leaf for entry, leaf in zip(plan["inputs"], given)}
    sources = {value["name"]: value["source"].get("name") for value in plan["values"]}
    assert plan["gradients"]
    for gradient in plan["gradients"]:
        wanted = leaves[sources[gradient["of"]]].grad
        if gradient["value"] is None:
            assert wanted is None
        else:
            _close(found[gradient["value"]], wanted)
    for name, buffer in theirs.named_buffers():
        (value,) = (value for value, source in sources.items() if source == name)
        _close(found[value], buffer)
    return plan


def _close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    largest = theirs.abs().max().item()
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * max(1, largest))


@pytest.mark.parametrize(
    ("wants_gradient", "target"), [(True, "host"), (False, "host"), (True, "small")]
)
def test_two_regions_with_a_host_part_between(
    tmp_path: Path, wants_gradient: bool, target: str
) -> None:
    """The decisive one: outputs and gradients, computed without Python."""
    image = torch.randn(2, 3, 16, 16, requires_grad=wants_gradient)
    plan = check(TwoRegions(), image, folder=tmp_path, target=target)
    engines = {unit["name"]: [p["engine"] for p in plan["parts"] if p["unit"] == unit["name"]]
               for unit in plan["units"]}  # fmt: skip
    assert engines["forward_0"] == ["npu", "llvm", "npu"]
    assert "npu" in engines["backward_0"]
    assert len(plan["gradients"]) == 4 + wants_gradient


def test_tangents_of_outputs_that_look_alike(tmp_path: Path) -> None:
    """The plan says which is whose: exchanged tangents would give other gradients."""

    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)

        def forward(self, x):
            return {"first": self.a(x).tanh(), "second": self.b(x).sigmoid()}

    plan = check(Twins(), torch.randn(1, 3, 9, 9), folder=tmp_path)
    values = {value["name"]: value for value in plan["values"]}
    for entry in plan["outputs"]:
        assert values[entry["tangent"]]["source"]["of"] == entry["value"]


def test_an_output_that_is_returned_twice_and_a_layer_that_is_called_twice(tmp_path: Path) -> None:
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x):
            y = self.a(x)
            torch._dynamo.graph_break()
            return {"sum": self.b(self.b(y)) + y + self.b(y), "pair": [y, y]}

    plan = check(Twice(), torch.randn(2, 3, 8, 8), folder=tmp_path)
    tangents = [output["tangent"] for output in plan["outputs"]]
    assert tangents[1] == tangents[2] != tangents[0]


def test_graph_breaks(tmp_path: Path) -> None:
    """Three graphs, PyTorch calls in Python between them, a view that crosses, a shared weight."""

    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x):
            y = self.b(self.a(x).relu())
            torch._dynamo.graph_break()
            part = y[:, :4]
            torch._dynamo.graph_break()
            return self.b(torch.cat([part, torch.sin(part)], 1)), y * 2

    image = torch.randn(2, 3, 8, 8, requires_grad=True)
    plan = check(Broken(), image, folder=tmp_path)
    kinds = [unit["kind"] for unit in plan["units"]]
    assert kinds.count("forward") >= 2 and kinds.count("backward") >= 2
    assert {step["op"] for step in plan["backward"]} >= {"run", "add"}


def test_batch_norm_and_its_statistics(tmp_path: Path) -> None:
    """Training writes the running statistics: a step of the plan, into the buffer's own memory."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3))
    plan = check(model, torch.randn(4, 3, 10, 10), folder=tmp_path)
    buffers = {v["name"] for v in plan["values"] if v["source"]["kind"] == "buffer"}
    written = {s["target"] for unit in plan["units"] for s in unit["steps"] if s["op"] == "copy"}
    assert len(buffers & written) == 3


def test_maxima_and_their_gradients(tmp_path: Path) -> None:
    """Indices of maxima are compared, not used as addresses."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 4, 3)
    )
    check(model, torch.randn(2, 3, 14, 14, requires_grad=True), folder=tmp_path)


def test_threads(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.GELU(), nn.Conv2d(32, 16, 3))
    check(model, torch.randn(2, 8, 24, 24, requires_grad=True), folder=tmp_path, threads=2)


def test_a_classifier_with_its_loss(tmp_path: Path) -> None:
    """Pooling, linear and a loss of one element."""

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 8, 3)
            )
            self.head = nn.Linear(8, 5)

        def forward(self, x, wanted):
            scores = self.head(self.features(x).mean((2, 3)))
            return nn.functional.cross_entropy(scores, wanted)

    check(Classifier(), torch.randn(3, 1, 12, 12), torch.tensor([0, 3, 4]), folder=tmp_path)


def test_random_numbers_come_from_the_caller(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout(0.25), nn.Conv2d(8, 8, 3)).train()
    x = torch.randn(1, 3, 9, 9)
    path = mlir_npu.capture(model, x, train=True).export(tmp_path)
    plan = read_plan(path)
    Draft202012Validator(SCHEMA).validate(plan)
    check_references(plan, tmp_path)
    (value,) = (v for v in plan["values"] if v["source"]["kind"] == "random")
    assert value["source"]["distribution"] == "uniform"
    (output,), numbers = plan["outputs"], torch.rand(value["shape"])
    tangent = torch.randn(1, 8, 5, 5)
    found = run(path, {"input": x, value["name"]: numbers, output["tangent"]: tangent})

    theirs = model[2](model[0](x) * (numbers < 0.75) / 0.75)
    theirs.backward(tangent)
    _close(found[output["value"]], theirs.detach())
    sources = {value["name"]: value["source"].get("name") for value in plan["values"]}
    leaves = dict(model.named_parameters())
    for gradient in plan["gradients"]:
        _close(found[gradient["value"]], leaves[sources[gradient["of"]]].grad)


def test_a_program_that_was_loaded_is_exported_likewise(tmp_path: Path) -> None:
    program = mlir_npu.capture(TwoRegions(), torch.randn(1, 3, 9, 9), train=True)
    program.export(tmp_path / "captured")
    program.save(tmp_path / "saved")
    mlir_npu.load(tmp_path / "saved").save(tmp_path / "again")
    mlir_npu.load(tmp_path / "again").export(tmp_path / "loaded")
    files = sorted(p.relative_to(tmp_path / "captured") for p in tmp_path.glob("captured/**/*.*"))
    assert len(files) > 10
    _, different, missing = filecmp.cmpfiles(
        tmp_path / "captured", tmp_path / "loaded", files, shallow=False
    )
    assert not different and not missing


def test_one_unit_alone(tmp_path: Path) -> None:
    """What other units make, the caller gives."""
    model, x = TwoRegions(), torch.randn(1, 3, 9, 9)
    program = mlir_npu.capture(model, x, train=True)
    backward = program.backward_units[0]
    path = program.export(tmp_path, units=[backward.name])
    plan = read_plan(path)
    Draft202012Validator(SCHEMA).validate(plan)
    check_references(plan, tmp_path)
    assert [unit["name"] for unit in plan["units"]] == [backward.name]
    assert plan["forward"] == [] and plan["backward"] == [{"op": "run", "unit": backward.name}]

    with torch.no_grad():
        results, saved = program.module.forward([x], program.parameters)
    given = dict(zip(program.plan.saved, saved, strict=True))
    (tangent,) = (v["name"] for v in plan["values"] if v["source"]["kind"] == "tangent")
    found = run(path, given | {tangent: torch.ones_like(results[0])})
    model(x).sum().backward()
    leaves = dict(model.named_parameters())
    for gradient in plan["gradients"]:
        _close(found[gradient["value"]], leaves[program.plan.values[gradient["of"]].source].grad)
