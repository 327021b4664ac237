"""The docs: examples that run, tables that match the code, links that lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mlir_npu.scripts import update_docs

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]*)(#[^)\s]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def anchor(heading: str) -> str:
    """How a heading is linked to."""
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_first_example_runs_as_it_stands(tmp_path: Path) -> None:
    example = blocks(ROOT / "README.md", "python")[0]
    assert len(example.splitlines()) <= 12
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("tensor([[")


def test_example_of_a_program_runs(tmp_path: Path) -> None:
    (example,) = [e for e in blocks(ROOT / "README.md", "python") if "mlir_npu.capture" in e]
    subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True)


def test_examples_of_the_user_guide_run_one_after_the_other(tmp_path: Path) -> None:
    examples = blocks(ROOT / "docs" / "user-guide.md", "python")
    program = "\n".join(["import torch", "images = torch.randn(1, 3, 64, 64)", *examples])
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "NPU region" in run.stdout


def test_examples_and_commands_of_the_vendor_guide_run(tmp_path: Path) -> None:
    """The Python examples in one program, then the commands on what it has dumped."""
    page = ROOT / "docs" / "vendor-guide.md"
    program = "\n".join(blocks(page, "python"))
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "npu.conv2d" in run.stdout
    run_commands(page, tmp_path)


def test_commands_of_the_case_study_run(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    run_commands(ROOT / "docs" / "case-study.md", tmp_path)


def test_example_of_the_simulator_page_runs(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (example,) = blocks(ROOT / "docs" / "simulator.md", "python")
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "conv2d_0" in run.stdout


def run_commands(page: Path, folder: Path) -> None:
    """Every command of ours on the page works and prints what it is there to print."""
    commands = re.findall(r"^\$ (npu-opt|npu-sim) (.*)$", page.read_text(), re.MULTILINE)
    assert commands
    for tool, arguments in commands:
        command = [str(Path(sys.executable).with_name(tool)), *shlex.split(arguments)]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{tool} {arguments}: {run.stderr}"
        assert {"npu-opt": "func.func", "npu-sim": "cycles"}[tool] in run.stdout


def test_tables_match_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert update_docs.main(["--check"]) == 0, capsys.readouterr().out


def test_generated_parts_are_where_readers_look_for_them() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert {name for name in update_docs.PARTS if f"<!-- begin {name} -->" in text} == set(
        update_docs.PARTS
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for file, fragment in LINK.findall(page.read_text()):
        target = (page.parent / file) if file else page
        assert target.exists(), f"{page.name} links to {file}"
        if fragment:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert fragment in map(anchor, headings), f"{page.name} links to {file}{fragment}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_has_a_gap(page: Path) -> None:
    assert not re.findall(r"^[A-Z]+(?:_[A-Z]+)*$", page.read_text(), re.MULTILINE)
