"""What npu-opt does with one input, in process."""

from __future__ import annotations

import pytest

from mlir_npu.dialect.target import load_target
from mlir_npu.passes.diagnostics import Diagnostic
from mlir_npu.passes.opt_driver import (
    OptOptions,
    compare_diagnostics,
    expectations,
    process_chunk,
    split_chunks,
)
from mlir_npu.passes.pipeline_text import PipelineError
from mlir_npu.scripts.npu_opt import main

GOOD = "func.func @f() {\n  return\n}\n"
BAD = 'func.func @f() {\n  "npu.dma_wait"() : () -> ()\n  return\n}\n'


def error(line: int, message: str) -> Diagnostic:
    return Diagnostic("error", f'loc("-":{line}:1)', line, message)


def test_chunks_keep_the_line_numbers_of_the_file():
    chunks = split_chunks("a\n// -----\nb\n// ----- with a remark\n\nc\n")
    assert [chunk.strip() for chunk in chunks] == ["a", "b", "c"]
    assert [chunk.count("\n", 0, chunk.index(chunk.strip())) for chunk in chunks] == [0, 2, 5]


def test_a_marker_inside_a_line_splits_nothing():
    assert split_chunks("a // -----\nb") == ["a // -----\nb"]


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("// expected-error {{m}}", 1),
        ("// expected-error@below {{m}}", 2),
        ("// expected-error @below {{m}}", 2),
        ("// expected-error @above {{m}}", 0),
        ("// expected-error @+3 {{m}}", 4),
        ("// expected-error @-1 {{m}}", 0),
    ],
)
def test_expectations_name_a_line(comment, line):
    assert expectations(comment) == [(line, "error", "m")]


def test_each_expectation_takes_one_diagnostic():
    text = "// expected-error {{m}}"
    assert compare_diagnostics(text, [error(1, "a m b")], "x") == []
    assert compare_diagnostics(text, [error(1, "m"), error(1, "m")], "x") == [
        "unexpected x:1:1: error: m"
    ]
    assert compare_diagnostics(text, [], "x") == ["x:1: expected error 'm' was not produced"]
    assert len(compare_diagnostics(text, [error(2, "m")], "x")) == 2


def test_an_expectation_that_can_never_be_met_is_a_problem():
    assert compare_diagnostics("// expected-remark {{m}}", [], "x") == [
        "x:1: expected-remark is not one of error, note"
    ]


def test_a_good_chunk_is_printed():
    result = process_chunk(GOOD, OptOptions())
    assert "func.func @f()" in result.output
    assert not result.problems


def test_a_bad_chunk_is_not_printed_and_its_error_names_the_file():
    result = process_chunk(BAD, OptOptions(), "some/file.mlir")
    assert result.output is None
    assert result.problems[0].startswith("some/file.mlir:2:3: error: 'npu.dma_wait' op takes")


def test_the_target_is_written_before_passes_run():
    options = OptOptions(target=load_target("small"), pipeline="builtin.module(cse)")
    assert 'name = "small"' in process_chunk(GOOD, options).output


def test_a_wrong_pipeline_is_not_a_matter_of_the_chunk():
    with pytest.raises(PipelineError):
        process_chunk(GOOD, OptOptions(pipeline="builtin.module(nothing)"))


@pytest.mark.parametrize(
    ("text", "arguments", "code"),
    [
        (GOOD, [], 0),
        (BAD, [], 1),
        (GOOD, ["--pass-pipeline=cse"], 2),
        (GOOD, ["--target=nothing"], 2),
        (BAD, ["--verify-diagnostics"], 1),
        (BAD + "// expected-error @-3 {{takes at least one}}", ["--verify-diagnostics"], 0),
    ],
)
def test_exit_codes(tmp_path, capsys, text, arguments, code):
    path = tmp_path / "in.mlir"
    path.write_text(text)
    assert main([str(path), *arguments]) == code
    captured = capsys.readouterr()
    assert bool(captured.err) == (code != 0)


def test_the_output_file_is_left_alone_after_a_failure(tmp_path, capsys):
    source, target = tmp_path / "in.mlir", tmp_path / "out.mlir"
    source.write_text(BAD)
    assert main([str(source), "-o", str(target)]) == 1
    assert not target.exists()
    source.write_text(GOOD)
    assert main([str(source), "-o", str(target)]) == 0
    assert "func.func @f()" in target.read_text()
