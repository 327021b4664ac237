"""Functions of our own that are written in the LLVM dialect: compiled once, then in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir_npu.runtime.compile_pool import POOL, After, Job, nothing, run_apart, run_here
from mlir_npu.runtime.object_cache import default_cache
from mlir_npu.runtime.toolchain import digest, is_current

_SUPPLIED: dict[str, bytes] = {}


def supply(contents: Mapping[str, bytes]) -> None:
    """Objects by text that were compiled elsewhere, for processes that have neither MLIR nor a
    cache."""
    _SUPPLIED.update(contents)


def object_of_text(text: str) -> bytes:
    """The machine code of a module in text form."""
    contents = _found(text)
    if contents is None:
        contents = _compile(text)
        _keep(text, contents)
    return contents


def with_texts(
    run: Callable, texts: Sequence[str], jobs: Sequence[Job], after: After = nothing
) -> list[Any]:
    """What `run` makes of the jobs. Processes that get none compile these texts meanwhile, which
    are needed soon."""
    beside = [("emit", (text,)) for text in texts if _found(text) is None]

    def after_(job: Job, outcome: Any) -> Sequence[Job]:
        if job not in beside:
            return after(job, outcome)
        if isinstance(outcome, bytes):  # else it fails again where it is needed
            (text,) = job[1]
            _SUPPLIED[text] = outcome
            _keep(text, outcome)
        return ()

    return run([*jobs, *beside], after_)[: len(jobs)]


def _found(text: str) -> bytes | None:
    return _SUPPLIED.get(text) or default_cache().get(digest("text", text))


def _keep(text: str, contents: bytes) -> None:
    if is_current():
        default_cache().put(digest("text", text), contents)


def _compile(text: str) -> bytes:
    run = run_apart if POOL.is_running else run_here  # MLIR is loaded there already
    (outcome,) = run([("emit", (text,))])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
