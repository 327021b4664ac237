"""What an export writes, read without a C compiler: the plan and its schema, the IR, errors."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import torch
from torch import nn

import mlir_npu
from mlir_npu import ExportError
from mlir_npu.scripts import npu_opt

SCHEMA = json.loads((Path(__file__).parents[3] / "export/schema/plan-1.schema.json").read_text())


class Sine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3)
        self.b = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        y = torch.sin(self.a(x))
        return self.b(y), y[0], y.permute(0, 2, 3, 1)


class Factored(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        features = self.conv(x).flatten(1)
        q, r = torch.linalg.qr(features)
        return torch.cos(q), r


def export(model, *inputs, folder: Path, options=None, **how) -> dict:
    path = mlir_npu.capture(model.eval(), *inputs, options=options).export(folder, **how)
    plan = json.loads(path.read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(plan)
    check_references(plan, path.parent)
    return plan


def check_references(plan: dict, folder: Path) -> None:
    """What a schema cannot say: names and files are there, and values are made before they are
    read."""
    values = {value["name"]: value for value in plan["values"]}
    assert len(values) == len(plan["values"])
    for value in plan["values"]:
        if "base" in value:
            assert "base" not in values[value["base"]]
    parts = {part["name"]: part for part in plan["parts"]}
    for part in plan["parts"]:
        for file in (*part["ir"].values(), part["object"]):
            assert file is None or (folder / file).is_file()
    assert (folder / plan["files"]["weights"]).stat().st_size == plan["weights_bytes"]
    units = {unit["name"]: unit for unit in plan["units"]}
    made = {
        name
        for name, value in values.items()
        if value["source"]["kind"] not in ("computed", "prepared") or 0 in value["shape"]
    }
    for unit in plan["units"]:
        for step in unit["prepare"]:
            follow(step, parts, values, made)
    for step in (*plan["forward"], *plan["backward"]):
        if step["op"] != "run":
            follow(step, parts, values, made)
            continue
        unit = units[step["unit"]]
        assert len(unit["frees"]) == len(unit["steps"])
        for inner, freed in zip(unit["steps"], unit["frees"]):
            follow(inner, parts, values, made)
            made.difference_update(freed)
        assert {name for name in unit["outputs"] if isinstance(name, str)} <= made
    for entry in (*plan["outputs"], *plan["gradients"]):
        assert not isinstance(entry["value"], str) or entry["value"] in made


def follow(step: dict, parts: dict, values: dict, made: set[str]) -> None:
    if step["op"] == "view":
        assert values[step["value"]]["base"] in made
        made.add(step["value"])
    elif step["op"] == "call":
        part = parts[step["part"]]
        arguments = (
            part["arguments"] if step["symbol"] == part["symbol"] else part["prepare_arguments"]
        )
        for slot, argument in zip(step["slots"], arguments, strict=True):
            assert (argument["role"] == "output") == (slot.get("value") in step["writes"])
            assert "value" not in slot or argument["role"] == "output" or slot["value"] in made
        made.update(step["writes"])
    elif step["op"] in ("copy", "add"):
        assert step["source"] in made
        assert values[step["source"]]["shape"] == values[step["target"]]["shape"]
        made.add(step["target"])
    elif step["op"] == "host":
        assert set(step["reads"]) <= made
        made.update(step["writes"])
    else:
        assert step["op"] in ("zero", "check")
        made.add(step["value"])


def test_plan_follows_its_schema(tmp_path: Path) -> None:
    plan = export(Sine(), torch.randn(1, 3, 12, 12), folder=tmp_path)
    assert [entry["path"] for entry in plan["outputs"]] == ["[0]", "[1]", "[2]"]
    assert [part["engine"] for part in plan["parts"]] == ["npu", "llvm", "npu"]
    assert plan["machine"]["target"] == "host"


def test_ir_of_every_level_is_read_by_npu_opt(tmp_path: Path) -> None:
    plan = export(Sine(), torch.randn(1, 3, 12, 12), folder=tmp_path)
    for part in plan["parts"]:
        wanted = {"torch", "linalg", "llvm"} | ({"npu"} if part["engine"] == "npu" else set())
        assert part["ir"].keys() == wanted
        for level, file in part["ir"].items():
            out = tmp_path / "out.mlir"
            assert npu_opt.main([str(tmp_path / file), "-o", str(out)]) == 0
            text = out.read_text()
            assert f"{level}." in text
            if level in ("npu", "llvm"):
                assert "tensor<" not in text


def test_ir_can_be_compiled_on(tmp_path: Path) -> None:
    plan = export(Sine(), torch.randn(1, 3, 12, 12), folder=tmp_path)
    source, out = tmp_path / plan["parts"][0]["ir"]["linalg"], tmp_path / "out.mlir"
    assert npu_opt.main([str(source), "--stages", "normalise..llvm", "-o", str(out)]) == 0
    assert "llvm.func @main" in out.read_text()


def test_levels_choose_what_is_written(tmp_path: Path) -> None:
    plan = export(Sine(), torch.randn(1, 3, 12, 12), folder=tmp_path, levels=("linalg",))
    assert not list(tmp_path.rglob("*.o")) and not list(tmp_path.glob("*.h"))
    assert len(list(tmp_path.rglob("*.mlir"))) == len(plan["parts"]) == 3


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"levels": ("linalg", "tosa")}, "no level is called 'tosa'; there are torch, linalg"),
        ({"levels": "llvm"}, r"levels is a list of names, and 'llvm' is one: \['llvm'\]"),
        ({"units": ("forward_9",)}, "no unit is called 'forward_9'; there are forward_0"),
        ({"name": "my program"}, "'my program' is no name for C"),
    ],
)
def test_wrong_arguments_are_errors(tmp_path: Path, how: dict, message: str) -> None:
    program = mlir_npu.capture(nn.Conv2d(3, 8, 3), torch.randn(1, 3, 12, 12))
    with pytest.raises(ExportError, match=message):
        program.export(tmp_path / "out", **how)
    assert not (tmp_path / "out").exists()


def test_calls_without_machine_code_are_an_error(tmp_path: Path) -> None:
    program = mlir_npu.capture(Factored().eval(), torch.randn(2, 3, 12, 12))
    with pytest.raises(ExportError) as error:
        program.export(tmp_path / "out")
    ((op, location, _),) = error.value.calls
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1)
                if "torch.linalg.qr(features)" in text)  # fmt: skip
    assert (op, location) == ("aten.linalg_qr.default", f"{__file__}:{line}")
    assert "host_calls=True" in str(error.value) and f"{__file__}:{line}" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_calls_without_machine_code_can_be_steps(tmp_path: Path) -> None:
    plan = export(Factored(), torch.randn(2, 3, 12, 12), folder=tmp_path, host_calls=True)
    (step,) = (s for unit in plan["units"] for s in unit["steps"] if s["op"] == "host")
    call, q, r = step["calls"]
    assert call["op"] == "aten.linalg_qr.default"
    assert call["arguments"][0] == {"value": step["reads"][0]}
    assert q["op"] == r["op"] == "getitem"
    assert [q["name"], r["name"]] == step["writes"]
    assert "linalg_qr" in call["reason"] and call["location"].startswith(__file__)
    assert plan["parts"][-1]["ops"] == ["aten.cos.default"]  # what is around it is compiled


def test_functions_without_tensors_have_plans_too(tmp_path: Path) -> None:
    class Nothing(nn.Module):
        def forward(self, x):
            return x, 3

    plan = export(Nothing(), torch.randn(2), folder=tmp_path)
    assert plan["units"] == plan["parts"] == []
    assert [entry["value"] for entry in plan["outputs"]] == ["x", 3]
