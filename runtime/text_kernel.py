"""Functions of our own that are written in the LLVM dialect: compiled once, then in the cache."""

from __future__ import annotations

from collections.abc import Mapping

from mlir_npu.runtime.compile_pool import POOL, run_apart, run_here
from mlir_npu.runtime.object_cache import default_cache
from mlir_npu.runtime.toolchain import digest, is_current

_SUPPLIED: dict[str, bytes] = {}


def supply(contents: Mapping[str, bytes]) -> None:
    """Objects by text that were compiled elsewhere, for processes that have neither MLIR nor a
    cache."""
    _SUPPLIED.update(contents)


def object_of_text(text: str) -> bytes:
    """The machine code of a module in text form."""
    if text in _SUPPLIED:
        return _SUPPLIED[text]
    key, cache = digest("text", text), default_cache()
    contents = cache.get(key)
    if contents is None:
        contents = _compile(text)
        if is_current():
            cache.put(key, contents)
    return contents


def _compile(text: str) -> bytes:
    run = run_apart if POOL.is_running else run_here  # MLIR is loaded there already
    (outcome,) = run([("emit", (text,))])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
