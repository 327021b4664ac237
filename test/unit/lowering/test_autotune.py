"""The tuner: what may win, what is remembered, and that passes do what was chosen."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.lowering import autotune
from mlir_npu.options import Options
from mlir_npu.passes.kernels.choices import SCHEDULES, WINOGRAD, set_choices
from mlir_npu.passes.kernels.walk import kernels, nested, string
from mlir_npu.passes.pipelines import npu_recipe
from mlir_npu.passes.run_stages import run_stages
from mlir_npu.runtime.bytecode import bytecode
from mlir_npu.runtime.compile_jobs import Session
from mlir_npu.runtime.contest import Outcome

RECIPE = npu_recipe()
TEXT = """
#same = affine_map<(n, y, x, c) -> (n, y, x, c)>
func.func @main(%x: tensor<1x30x30x16xf32> {npu.role = "input"},
                %w: tensor<3x3x16x32xf32> {npu.role = "parameter"}) -> tensor<1x28x28x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x28x28x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  %r = linalg.conv_2d_nhwc_hwcf
    {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
    ins(%x, %w : tensor<1x30x30x16xf32>, tensor<3x3x16x32xf32>)
    outs(%f : tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  %y = linalg.generic {indexing_maps = [#same, #same],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%r : tensor<1x28x28x32xf32>) outs(%e : tensor<1x28x28x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.exp %in : f32
    linalg.yield %v : f32
  } -> tensor<1x28x28x32xf32>
  return %y : tensor<1x28x28x32xf32>
}
"""


@pytest.fixture
def module():
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        set_target(module.operation, load_target("host"))
        yield module


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(autotune, "_known", {})


def test_the_algorithm_is_obeyed(module):
    (question,) = Session().questions("convolutions", bytecode(module), RECIPE, 1)
    assert sorted(question.candidates) == ["0 : i64", "2 : i64", "4 : i64"]
    for outputs in (0, 2, 4):
        copy = ir.Module.parse(module.operation.get_asm())
        set_choices(copy.operation, WINOGRAD, {question.key: f"{outputs} : i64"})
        run_stages(copy, last="normalise")
        found = [
            op for op in nested(copy.operation, "linalg.generic") if "npu.outputs" in op.attributes
        ]
        assert [ir.IntegerAttr(op.attributes["npu.outputs"]).value for op in found] == (
            [outputs] if outputs else []
        )
        assert WINOGRAD not in copy.operation.attributes


def test_the_schedule_is_obeyed(module):
    (question,) = Session().questions("kernels", bytecode(module), RECIPE, 1)
    assert len(question.candidates) > 2
    for schedule in question.candidates:
        copy = ir.Module.parse(module.operation.get_asm())
        set_choices(copy.operation, SCHEDULES, {question.key: schedule})
        run_stages(copy, last="schedule")
        (kernel,) = (k for k in kernels(copy.operation) if "conv2d" in string(k, "npu.kernel"))
        assert kernel.attributes["npu.schedule"] == ir.Attribute.parse(schedule)
        assert SCHEDULES not in copy.operation.attributes


def test_the_first_candidate_is_what_the_model_takes(module):
    (algorithm,) = Session().questions("convolutions", bytecode(module), RECIPE, 1)
    (kernel_question,) = Session().questions("kernels", bytecode(module), RECIPE, 1)
    run_stages(module, last="schedule")
    (kernel,) = (k for k in kernels(module.operation) if "conv2d" in string(k, "npu.kernel"))
    assert kernel.attributes["npu.schedule"] == ir.Attribute.parse(kernel_question.candidates[0])
    (generic,) = (op for op in nested(kernel, "linalg.generic") if "npu.outputs" in op.attributes)
    assert str(generic.attributes["npu.outputs"]) == algorithm.candidates[0]


def test_winograd_that_is_forbidden_is_not_measured(module):
    recipe = npu_recipe(winograd=False)
    assert Session().questions("convolutions", bytecode(module), recipe, 1) == []


def test_equal_kernels_are_one_question(module):
    """Names and where they stand do not matter."""
    other = TEXT.replace("%r", "%other").replace("func.func @main", "\n\nfunc.func @main")
    again = ir.Module.parse(other)
    set_target(again.operation, load_target("host"))
    for about in autotune.ABOUT:
        one, two = (Session().questions(about, bytecode(m), RECIPE, 1) for m in (module, again))
        assert [q.text for q in one] == [q.text for q in two] != []


def bench() -> autotune._Bench:
    return autotune._Bench(load_target("host"), RECIPE, Options(cache=False, num_threads=1))


def last_wins(monkeypatch):
    """Whoever comes last among those that may win is fastest, by decree."""

    def contest(runs, between):
        return Outcome(len(runs) - 1, 2.0, 1.0)

    monkeypatch.setattr(autotune, "contest", contest)


def test_a_candidate_that_computes_something_else_cannot_win(module, monkeypatch, caplog):
    last_wins(monkeypatch)
    session = Session()
    (question,) = session.questions("kernels", bytecode(module), RECIPE, 1)
    question = replace(question, candidates=question.candidates[:3])
    outcomes = [session.candidate(question, c, RECIPE) for c in question.candidates]
    assert bench()._measure(question, outcomes).chosen == question.candidates[2]
    with make_context(), ir.Location.unknown():
        other = ir.Module.parse(TEXT.replace("math.exp", "math.absf"))
        set_target(other.operation, load_target("host"))
        wrong = bytecode(other)
    (another,) = session.questions("kernels", wrong, RECIPE, 1)
    outcomes[2] = session.candidate(another, question.candidates[2], RECIPE)
    with caplog.at_level(logging.WARNING, "mlir_npu.autotune"):
        answer = bench()._measure(question, outcomes)
    assert (answer.chosen, answer.rejected) == (question.candidates[1], 1)
    assert "is rejected: it computes something else" in caplog.text


def test_a_candidate_that_does_not_compile_cannot_win(module, monkeypatch, caplog):
    last_wins(monkeypatch)
    session = Session()
    (question,) = session.questions("kernels", bytecode(module), RECIPE, 1)
    question = replace(question, candidates=question.candidates[:2])
    outcome = session.candidate(question, question.candidates[0], RECIPE)
    answer = bench()._measure(question, [outcome, RuntimeError("no such tile")])
    assert (answer.chosen, answer.is_other, answer.rejected) == (question.candidates[0], False, 1)
    assert "no such tile" in caplog.text
    assert bench()._measure(question, [RuntimeError("broken"), outcome]) is None


def test_what_is_known_is_not_measured_again(module, monkeypatch):
    last_wins(monkeypatch)
    first = [ir.Module.parse(module.operation.get_asm()) for _ in range(2)]
    tuned = [t for about in autotune.ABOUT for t in bench().tune(about, first[0])]
    assert tuned and not any(t.known for t in tuned)

    def compile_nothing(self, questions):
        assert questions == []
        return []

    monkeypatch.setattr(autotune._Bench, "_compile", compile_nothing)
    again = [t for about in autotune.ABOUT for t in bench().tune(about, first[1])]
    assert [replace(t, known=False) for t in again] == tuned and all(t.known for t in again)
    for name in (WINOGRAD, SCHEDULES):
        assert first[0].operation.attributes[name] == first[1].operation.attributes[name]


def test_answers_are_of_one_number_of_threads(module):
    (question,) = Session().questions("convolutions", bytecode(module), RECIPE, 1)
    benches = [
        autotune._Bench(load_target("host"), RECIPE, Options(num_threads=threads))
        for threads in (1, 1, 2)
    ]
    one, same, other = (bench._key(question) for bench in benches)
    assert one == same != other
