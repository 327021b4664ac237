"""Pipelines in text: syntax, order, nesting, verification, failures."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.pass_manager import PipelineFailure, run_pipeline
from mlir_npu.passes.pipeline_text import PipelineElement, PipelineError, parse_pipeline
from mlir_npu.passes.registry import fail, register_pass

TWO_FUNCTIONS = """
func.func @f(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  %1 = arith.addf %a, %a : f32
  return %1 : f32
}
func.func @g() {
  return
}
"""

CONSUMED_TWICE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["f"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.loop.unroll %0 {factor = 2} : !transform.any_op
    transform.loop.unroll %0 {factor = 2} : !transform.any_op
    transform.yield
  }
}
"""


@dataclass(frozen=True)
class MarkOptions:
    tag: str = "seen"
    sizes: tuple[int, ...] = (1,)


@register_pass("test-mark", MarkOptions)
def mark(op, options):
    op.attributes[f"npu.{options.tag}"] = ir.DenseI64ArrayAttr.get(list(options.sizes))


@register_pass("test-refuse")
def refuse(op, options):
    fail(op, "cannot do this: 3 of 2")


@register_pass("test-emit-only")
def emit_only(op, options):
    op.location.emit_error("said, but not raised")


@register_pass("test-break")
def break_module(module, options):
    function = module.regions[0].blocks[0].operations[0]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))


@register_pass("test-need-target")
def need_target(module, options):
    target_of(module)


@register_pass("test-bug")
def bug(module, options):
    raise KeyError("a bug")


@pytest.fixture
def module():
    with make_context(), ir.Location.unknown():
        yield ir.Module.parse(TWO_FUNCTIONS)


def failure_of(module, pipeline: str) -> PipelineFailure:
    with pytest.raises(PipelineFailure) as caught:
        run_pipeline(module, pipeline)
    return caught.value


def test_parsing_keeps_order_options_and_nesting():
    root = parse_pipeline("builtin.module( a{x=1 y={2 3}} ,func.func(b,c{z}),d )")
    nested = PipelineElement(
        "func.func", "", (PipelineElement("b", "", None), PipelineElement("c", "z", None))
    )
    assert root.nested == (
        PipelineElement("a", "x=1 y={2 3}", None),
        nested,
        PipelineElement("d", "", None),
    )


@pytest.mark.parametrize(
    "text", ["", "cse", "builtin.module", "func.func(cse)", "builtin.module(cse),cse", "(cse)"]
)
def test_only_one_anchored_module_pipeline_is_accepted(text):
    with pytest.raises(PipelineError):
        parse_pipeline(text)


def test_our_passes_and_upstream_ones_run_in_order(module):
    order = []
    run_pipeline(
        module,
        "builtin.module(test-mark{tag=first sizes=2,3},func.func(cse,test-mark),canonicalize)",
        after_each=lambda name, seen: order.append((name, str(seen).count("arith.addf"))),
    )
    assert order == [("test-mark", 2), ("cse", 1), ("test-mark", 1), ("canonicalize", 1)]
    assert list(module.operation.attributes["npu.first"]) == [2, 3]
    for function in module.body.operations:
        assert list(function.attributes["npu.seen"]) == [1]
    assert "npu.seen" not in module.operation.attributes


@pytest.mark.parametrize(
    "wrong", ["tset-mark", "test-mark{size=1}", "cse{x}", "func.func(test-mark{tag})"]
)
def test_nothing_runs_if_a_later_element_is_wrong(module, wrong):
    before = str(module)
    with pytest.raises(PipelineError):
        run_pipeline(module, f"builtin.module(test-mark,{wrong})")
    assert str(module) == before


def test_a_refusal_carries_the_pass_and_what_it_said(module):
    failure = failure_of(module, "builtin.module(cse,func.func(test-refuse),canonicalize)")
    assert failure.pass_name == "test-refuse"
    (diagnostic,) = failure.diagnostics
    assert (diagnostic.severity, diagnostic.line) == ("error", 2)
    assert diagnostic.message == "cannot do this: 3 of 2"
    assert str(failure) == "pass 'test-refuse' failed: -:2:1: error: cannot do this: 3 of 2"


def test_an_emitted_error_is_a_failure(module):
    failure = failure_of(module, "builtin.module(test-emit-only)")
    assert [d.message for d in failure.diagnostics] == ["said, but not raised"]


def test_every_pass_is_followed_by_verification(module):
    failure = failure_of(module, "builtin.module(test-break,cse)")
    assert failure.pass_name == "test-break"
    assert "entry block must have 0 arguments" in failure.diagnostics[0].message


def test_an_upstream_failure_carries_its_diagnostics():
    check = "torch-verify-linalg-on-tensors-backend-contract"
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(
            "func.func @f() {\n %0 = memref.alloc() : memref<4xf32>\n return }"
        )
        failure = failure_of(module, f"builtin.module({check},test-refuse)")
    assert failure.pass_name == check
    first, note, *_ = failure.diagnostics
    assert (first.severity, first.line) == ("error", 2)
    assert "failed to legalize operation 'memref.alloc'" in first.message
    assert note.severity == "note"
    assert "note" not in str(failure)


def test_a_missing_target_is_a_failure_and_not_a_crash(module):
    failure = failure_of(module, "builtin.module(test-need-target)")
    assert "no npu.target attribute" in failure.diagnostics[0].message


def test_a_bug_in_a_pass_surfaces_as_itself(module):
    with pytest.raises(KeyError, match="a bug"):
        run_pipeline(module, "builtin.module(test-bug)")
    assert not module.context.emit_error_diagnostics
    run_pipeline(module, "builtin.module(cse)")


def test_warnings_of_upstream_passes_are_logged(caplog):
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(CONSUMED_TWICE)
        with caplog.at_level(logging.WARNING, logger="mlir_npu.passes"):
            run_pipeline(module, "builtin.module(transform-dialect-check-uses)")
    texts = [record.getMessage() for record in caplog.records]
    assert any("-:6:5: warning: operand #0 may be used after free" in text for text in texts)
