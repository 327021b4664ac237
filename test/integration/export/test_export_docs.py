"""The page about export: its programs, in Python and in C, and its excerpts."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from c_program import compile_c, needs_compiler, read_plan
from test_export_plan import SCHEMA

from mlir_npu.scripts import npu_opt

PAGE = (Path(__file__).parents[3] / "docs" / "export.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's Python has run; what it printed is in `printed`."""
    folder = tmp_path_factory.mktemp("page")
    program = "\n".join(blocks("python"))
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    (folder / "printed").write_text(run.stdout)
    return folder


@needs_compiler
def test_the_program_in_c_prints_what_pytorch_does(folder: Path) -> None:
    (main,) = (text for text in blocks("c") if "int main" in text)
    (folder / "main.c").write_text(main)
    command = next(line for line in PAGE.splitlines() if line.startswith("$ cc "))
    arguments = [
        str(path)
        for word in shlex.split(command)[2:]
        for path in (sorted(p.relative_to(folder) for p in folder.glob(word)) or [word])
    ]
    compile_c(*(str(folder / a) if (folder / a).exists() else a for a in arguments[:-4]),
              "-o", folder / "main", *arguments[-2:])  # fmt: skip
    run = subprocess.run(
        [str(folder / "main")], cwd=folder, capture_output=True, text=True, check=True
    )
    ours, theirs = float(run.stdout), float((folder / "printed").read_text())
    assert ours == pytest.approx(theirs, rel=1e-5)


def test_the_header_is_as_shown(folder: Path) -> None:
    (shown,) = (text for text in blocks("c") if "int main" not in text)
    assert _without_sizes(shown) in _without_sizes((folder / "edges" / "edges.h").read_text())


def _without_sizes(text: str) -> str:
    """Those of packed weights and scratch memory are the CPU's."""
    return re.sub(r"\[[\d, ]*\]|\d+ bytes", "#", text)


def test_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^\$ npu-opt (\S+) (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 2
    for file, arguments in commands:
        assert npu_opt.main([str(folder / file), *shlex.split(arguments)]) == 0
        assert "conv2d_0" in capsys.readouterr().out


def test_excerpts_of_plans(folder: Path) -> None:
    value, ends = blocks("json")
    schema = {"$ref": "#/$defs/value", "$defs": SCHEMA["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(json.loads(value))
    plan, ends = read_plan(folder / "trained" / "plan.json"), json.loads(f"{{{ends}}}")
    assert plan["outputs"] == ends["outputs"]
    assert plan["gradients"][:2] == ends["gradients"]


def test_every_step_is_in_the_table() -> None:
    steps = [name["$ref"].rpartition("/")[2] for name in SCHEMA["$defs"]["steps"]["items"]["oneOf"]]
    for step in steps:
        assert re.search(rf"^\| `{step}` \|", PAGE, re.MULTILINE), step
