"""Texts that are compiled beside other jobs, and once."""

import pytest

from mlir_npu.runtime import text_kernel
from mlir_npu.runtime.object_cache import VARIABLE

TEXTS = ("llvm.func @f(%x: !llvm.ptr) { llvm.return }", "llvm.func @g() { llvm.return }")


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(text_kernel, "_SUPPLIED", {})


def runner(outcome_of):
    """A `run`, and the jobs that it saw."""
    seen = []

    def run(jobs, after):
        seen.append(jobs)
        outcomes = [outcome_of(job) for job in jobs]
        for job, outcome in zip(jobs, outcomes, strict=True):
            after(job, outcome)
        return outcomes

    return run, seen


def test_they_ride_along_once(monkeypatch):
    run, seen = runner(lambda job: job[1][0].encode())
    jobs, told = [("plan", ("module",))], []

    def after(job, outcome):
        told.append((job, outcome))
        return ()

    for _ in range(2):
        assert text_kernel.with_texts(run, TEXTS, jobs, after) == [b"module"]
    assert seen == [[*jobs, *(("emit", (text,)) for text in TEXTS)], jobs]
    assert told == [(jobs[0], b"module")] * 2
    monkeypatch.setattr(text_kernel, "_compile", None)  # nothing is compiled again
    assert [text_kernel.object_of_text(text) for text in TEXTS] == [t.encode() for t in TEXTS]


def test_what_fails_beside_is_compiled_where_it_is_needed():
    run, _ = runner(lambda job: b"planned" if job[0] == "plan" else RuntimeError("no"))
    assert text_kernel.with_texts(run, TEXTS, [("plan", ())]) == [b"planned"]
    assert text_kernel.object_of_text(TEXTS[0]).startswith(b"\x7fELF")


def test_errors_of_the_jobs_are_passed_on():
    error = RuntimeError("a stage")
    run, _ = runner(lambda job: error if job[0] == "plan" else b"f")
    assert text_kernel.with_texts(run, TEXTS, [("plan", ())]) == [error]
