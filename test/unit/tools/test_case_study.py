"""The case study: each pass has its text, the machine that generates it leaves no trace."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from mlir_npu.dialect import target
from mlir_npu.passes.pipelines import STAGES
from mlir_npu.scripts.docs import case_study
from mlir_npu.scripts.docs.ir_excerpts import collapse, elide, innermost
from mlir_npu.scripts.docs.pass_notes import NOTES, STAGE_NOTES


def test_notes_are_those_of_the_pipeline():
    names = {name.partition("{")[0] for stage in STAGES[:-1] for name in stage.passes}
    assert set(NOTES) == names
    assert set(STAGE_NOTES) == {stage.name for stage in STAGES}


def test_a_pass_without_a_text_is_an_error(monkeypatch):
    monkeypatch.delitem(NOTES, "tile-kernels")
    with pytest.raises(ValueError, match="no text for tile-kernels"):
        case_study.run.__wrapped__()


def test_the_example_shows_what_it_is_there_to_show():
    steps = {step.name: step for step in case_study.run() if step.changed}
    assert "reduction_tile" in steps["choose-tiles"].after["conv2d_0"]
    assert {"hoist-invariant-dma", "double-buffer"} <= set(steps)
    assert "npu.dma_none" in steps["double-buffer"].after["conv2d_0"]


def test_the_host_leaves_no_trace(monkeypatch):
    def no_host():
        raise AssertionError("the case study looks at the CPU that it is made on")

    monkeypatch.setattr(target, "describe_host_cpu", no_host)
    assert case_study.run.__wrapped__() == case_study.run()


def test_torch_is_not_needed():
    program = (
        "import sys; from mlir_npu.scripts.docs import case_study; "
        "case_study.passes(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_steps_absorb_the_clean_up_after_them():
    steps = case_study.run()
    at = next(i for i, step in enumerate(steps) if step.name == "double-buffer")
    (merged,) = case_study._merged(steps[at : at + 3])
    assert merged == replace(steps[at], after=steps[at + 2].after)


def test_repeated_patterns_are_shown_once():
    lines = [f"  %{i} = arith.{op}f %a, %b : f32" for i in range(5) for op in ("mul", "add")]
    assert collapse(lines) == [*lines[:2], "  // the 2 ops above, 4 times more"]
    assert collapse(lines[:6]) == lines[:6]


def test_the_innermost_block_with_the_loops_around_it():
    lines = ["func @f {", "  a", "  scf.for {", "    scf.for {", "      x", "    }", "  }", "}"]
    shown = ["func @f {", "  ...", "  scf.for {", "    scf.for {", "      x", "    }"]
    assert innermost("\n".join(lines), "x").splitlines() == shown


def test_elisions():
    long = 'memref<4xf32, strided<[8], offset: ?>, #npu.space<"sram">> '
    assert elide(long) == "memref<4xf32, strided<...>, #sram>"
