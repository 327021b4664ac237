"""A convolution block of a residual network, from linalg to vector code: the IR after each pass.

The input is docs/case-study.mlir, the machine the target `small`. What each pass decided and why is
in pass_notes.py; a pass of the pipeline without a note is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import ATTRIBUTE_NAME, load_target, set_target
from mlir_npu.passes.pass_manager import run_pipeline
from mlir_npu.passes.pipelines import STAGES, Stage
from mlir_npu.passes.registry import all_passes
from mlir_npu.scripts.docs.ir_excerpts import basic_block, elide, functions, innermost
from mlir_npu.scripts.docs.pass_notes import NOTES, STAGE_NOTES, Note

INPUT = Path(__file__).resolve().parents[2] / "docs" / "case-study.mlir"
TARGET = "small"
CLEAN_UP = ("canonicalize", "cse", "symbol-dce", "duplicate-function-elimination")
SHOWN_FIRST = ("conv2d_0", "main")


@dataclass(frozen=True)
class Step:
    """The functions before and after one pass."""

    stage: str
    name: str
    before: dict[str, str]
    after: dict[str, str]

    @property
    def changed(self) -> list[str]:
        names = [n for n, text in self.after.items() if self.before.get(n) != text]
        return sorted(names, key=lambda n: SHOWN_FIRST.index(n) if n in SHOWN_FIRST else 2)


def table() -> str:
    """A row for each stage: its passes, ours in bold, and what it is for."""
    ours = all_passes()
    rows = ["| stage | passes | why |", "|---|---|---|"]
    for stage in STAGES:
        names = [name.partition("{")[0] for name in stage.passes]
        if stage.name == "llvm":
            names = ["upstream's conversions", *(name for name in names if name in ours)]
        listed = ", ".join(f"**{n}**" if n in ours else n for n in names)
        why = _one_line(STAGE_NOTES[stage.name])
        rows.append(f"| [{stage.name}](#{stage.name}) | {listed} | {why} |")
    return "\n".join(rows)


def source() -> str:
    return f"```mlir\n{elide(INPUT.read_text()).strip()}\n```"


def machine() -> str:
    with make_context() as context:
        attribute = load_target(TARGET).to_attribute(context)
        return f"```mlir\n{ATTRIBUTE_NAME} = {attribute}\n```"


def passes() -> str:
    """A chapter for each stage, a section for each pass that changed something."""
    steps = run()
    chapters = []
    for stage in STAGES:
        own = [step for step in steps if step.stage == stage.name]
        sections = _llvm(own) if stage.name == "llvm" else _sections(own)
        chapters.append(
            "\n\n".join([f"## {stage.name}", _one_line(STAGE_NOTES[stage.name]), *sections])
        )
    return "\n\n".join(chapters)


@functools.cache
def run() -> tuple[Step, ...]:
    """Every pass of the pipeline on the input, with the functions before and after."""
    steps: list[Step] = []
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(INPUT.read_text())
        set_target(module.operation, load_target(TARGET))
        for stage in STAGES:
            _check_notes(stage)
            _run_stage(module, stage, steps)
    return tuple(steps)


def _check_notes(stage: Stage) -> None:
    names = [name.partition("{")[0] for name in stage.passes]
    missing = [name for name in names if name not in NOTES]
    if missing and stage.name != "llvm":
        raise ValueError(f"pass_notes.py has no text for {', '.join(missing)}")


def _run_stage(module: ir.Module, stage: Stage, steps: list[Step]) -> None:
    before = functions(module)

    def after_each(name: str, module: ir.Module) -> None:
        nonlocal before
        after = functions(module)
        steps.append(Step(stage.name, name, before, after))
        before = after

    run_pipeline(module, stage.pipeline, after_each=after_each)


def _sections(steps: Sequence[Step]) -> Iterator[str]:
    idle = dict.fromkeys(f"`{step.name}`" for step in steps if not step.changed)
    for step in _merged(steps):
        if step.changed:
            yield _section(step)
    if idle:
        yield f"Found nothing to change here: {', '.join(idle)}."


def _merged(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps whose note says so absorb the clean-up after them."""
    steps = list(steps)
    while steps:
        step = steps.pop(0)
        while NOTES[step.name].with_clean_up and steps and steps[0].name in CLEAN_UP:
            step = replace(step, after=steps.pop(0).after)
        yield step


def _section(step: Step) -> str:
    note: Note = NOTES[step.name]
    shown = [name for name in note.shows if name in step.changed] or step.changed[:1]
    text = _one_line(note.text)
    if note.with_clean_up:
        text += " Shown after the clean-up that follows."
    code = "\n\n".join(_excerpt(step, name) for name in shown)
    rest = [f"`@{name}`" for name in step.changed if name not in shown]
    also = f"Changed alike: {', '.join(rest)}." if rest else ""
    if step.name in CLEAN_UP:
        summary = f"<code>{step.name}</code>: {text}"
        parts = [f"<details><summary>{summary}</summary>", code, also, "</details>"]
    else:
        parts = [f"### {step.name}", text, code, also]
    return "\n\n".join(part for part in parts if part)


def _excerpt(step: Step, name: str) -> str:
    text = elide(step.after[name])
    if step.stage == "cpu":
        text = innermost(text, "vector.fma") if "vector.fma" in text else text
    return f"```mlir\n{text}\n```"


def _llvm(steps: Sequence[Step]) -> Iterator[str]:
    """The innermost loop of the convolution at the very end."""
    text = elide(steps[-1].after["conv2d_0"])
    yield "The innermost loop of the convolution in the end:"
    yield f"```mlir\n{basic_block(text, 'llvm.intr.fmuladd')}\n```"


def _one_line(text: str) -> str:
    return " ".join(text.split())
