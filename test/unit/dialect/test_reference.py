"""The dialect reference leaves out no op and no check of the verifier."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

import pytest

from mlir_npu.dialect import base, npu
from mlir_npu.passes.opt_driver import OptOptions, process_chunk
from mlir_npu.scripts.docs import dialect_reference
from mlir_npu.scripts.docs.dialect_examples import EXAMPLES
from mlir_npu.scripts.docs.dialect_mistakes import FORM, RULES

DIALECT = Path(inspect.getfile(base)).parent
NOT_SHOWN = {"takes at most"}  # an op with 17 inputs is too long for a table


def calls_of_error() -> dict[tuple[str, int], str]:
    """(file, line) of every line of a call of `error` in the dialect -> the call."""
    found = {}
    for path in DIALECT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "error":
                for line in range(node.lineno, node.end_lineno + 1):
                    found[path.name, line] = f"{path.name}:{node.lineno}: {ast.unparse(node)}"
    return found


def test_every_message_of_the_verifier_is_shown():
    calls, shown = calls_of_error(), set()

    def trace(frame, event, _):
        if frame.f_code is base.error.__code__:
            caller = frame.f_back
            key = Path(caller.f_code.co_filename).name, caller.f_lineno
            shown.add(calls[key])

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for bad in (*FORM, *RULES):
            process_chunk(bad.text, OptOptions())
    finally:
        sys.settrace(before)
    missing = sorted(set(calls.values()) - shown)
    assert not [call for call in missing if not any(text in call for text in NOT_SHOWN)]


@pytest.mark.parametrize("bad", [*FORM, *RULES], ids=lambda bad: f"{bad.op}: {bad.rule}")
def test_a_bad_example_fails_at_a_place_and_in_one_way(bad):
    errors = [p for p in process_chunk(bad.text, OptOptions()).problems if ": error: " in p]
    assert len(errors) == 1
    assert errors[0].startswith("-:")


def test_every_op_has_an_example_that_verifies():
    names = {op.OPERATION_NAME for op in npu.Npu.operations if hasattr(op, "OPERATION_NAME")}
    assert {f"npu.{name}" for name in EXAMPLES} == names
    for name, example in EXAMPLES.items():
        assert not process_chunk(example.text, OptOptions()).problems
        assert f'"npu.{name}"' in example.body


def test_memories_are_those_that_the_verifier_accepts():
    text = dialect_reference.ops()
    move, convolution = (text.split(f"### npu.{name}\n")[1] for name in ("dma_start", "conv2d"))
    assert "| operand | `source` | memref | dram or sram |" in move.split("###")[0]
    assert "| operand | `accumulator` | memref | acc |" in convolution.split("###")[0]
