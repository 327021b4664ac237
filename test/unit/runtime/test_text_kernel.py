"""Texts that are compiled beside other jobs, and once."""

import pytest

from mlir_npu.runtime import text_kernel
from mlir_npu.runtime.object_cache import VARIABLE

TEXTS = ("llvm.func @f(%x: !llvm.ptr) { llvm.return }", "llvm.func @g() { llvm.return }")


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(text_kernel, "_SUPPLIED", {})


def test_they_ride_along_once(monkeypatch):
    seen = []

    def run(jobs):
        seen.append(jobs)
        return [arguments[0].encode() for _, arguments in jobs]

    for _ in range(2):
        assert text_kernel.with_texts(run, TEXTS, [("plan", ("module",))]) == [b"module"]
    assert seen == [
        [("plan", ("module",)), *(("emit", (text,)) for text in TEXTS)],
        [("plan", ("module",))],
    ]
    monkeypatch.setattr(text_kernel, "_compile", None)  # nothing is compiled again
    assert [text_kernel.object_of_text(text) for text in TEXTS] == [t.encode() for t in TEXTS]


def test_what_fails_beside_is_compiled_where_it_is_needed():
    failure = RuntimeError("no")
    run = lambda jobs: [b"planned", *(failure for _ in jobs[1:])]  # noqa: E731
    assert text_kernel.with_texts(run, TEXTS, [("plan", ())]) == [b"planned"]
    assert text_kernel.object_of_text(TEXTS[0]).startswith(b"\x7fELF")


def test_errors_of_the_jobs_are_passed_on():
    error = RuntimeError("a stage")
    assert text_kernel.with_texts(lambda jobs: [error, b"f", b"g"], TEXTS, [("plan", ())]) == [
        error
    ]
