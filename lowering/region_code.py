"""The code of a region: what it takes to run it without MLIR, compiled or found in the cache."""

from __future__ import annotations

import contextlib
import contextvars
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlir_npu.runtime.compile_pool import Job
from mlir_npu.runtime.interface import Interface
from mlir_npu.runtime.kernel import Kernel
from mlir_npu.runtime.object_cache import default_cache
from mlir_npu.runtime.region import CompiledRegion
from mlir_npu.runtime.signature import Signature
from mlir_npu.runtime.toolchain import digest, is_current
from mlir_npu.runtime.tuning import Tuning

if TYPE_CHECKING:
    from mlir_npu.passes.pipelines import Recipe

# what runs jobs: `run_here` or `run_apart`
Run = Callable[[list[Job]], list]


@dataclass(frozen=True)
class RegionCode:
    """objects: of @main, @prepare and the kernels; interface: what the caller sees; tuning: what
    was measured on the way, if anything was."""

    objects: tuple[bytes, ...]
    signature: Signature
    interface: Interface
    tuning: Tuning | None = None

    def load(self, name: str, num_threads: int) -> CompiledRegion:
        """Raises KernelLinkError and SignatureError."""
        kernel = Kernel.of_objects(self.objects)
        region = CompiledRegion(
            name, kernel, self.signature, self.interface, num_threads=num_threads
        )
        region.tuning = self.tuning
        region.code = self if _KEEPING.get() else None
        return region


_KEEPING: contextvars.ContextVar[bool] = contextvars.ContextVar("keeping", default=False)


@contextlib.contextmanager
def keeping_code() -> Iterator[None]:
    """Regions that are loaded inside of the block know their code, for programs to be saved."""
    token = _KEEPING.set(True)
    try:
        yield
    finally:
        _KEEPING.reset(token)


@dataclass(frozen=True)
class CompiledModule:
    objects: tuple[bytes, ...]
    signature: Signature


class JobFailure(Exception):
    """What went wrong with a module, which is here as bytecode; step: "plan" or "encode"."""

    def __init__(self, cause: Exception, step: str, module: bytes) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.step = step
        self.module = module


def cached_region(key: str | None, compile_: Callable[[], RegionCode]) -> RegionCode:
    """What the cache has for the key, or else what `compile_` makes; without a key, the latter."""
    cache = default_cache()
    if key is not None and (found := cache.get(key)) is not None:
        return pickle.loads(found)
    code = compile_()
    if key is not None and is_current():
        kept = replace(code, tuning=code.tuning and code.tuning.recalled())
        cache.put(key, pickle.dumps(kept, protocol=pickle.HIGHEST_PROTOCOL))
    return code


def compile_module(module: bytes, recipe: Recipe, run: Run, *, use_cache: bool) -> CompiledModule:
    """Compile a module on tensors, but for the kernels that the cache has. Raises JobFailure."""
    (planned,) = _run(run, "plan", [(module, recipe)])
    cache = default_cache() if use_cache and is_current() else None
    keys = {digest("kernel", repr(recipe.encode), k.text): k.module for k in planned.kernels}
    found = {key: cache.get(key) for key in keys} if cache else {}
    missing = [key for key in keys if found.get(key) is None]
    jobs = [(planned.driver, recipe, True), *((keys[key], recipe, False) for key in missing)]
    driver, *made = _run(run, "encode", jobs)
    for key, contents in zip(missing, made, strict=True):
        found[key] = contents
        if cache:
            cache.put(key, contents)
    return CompiledModule((driver, *found.values()), planned.signature)


def _run(run: Run, step: str, arguments: list[tuple]) -> list:
    """All results; the first argument of each is its module."""
    outcomes = run([(step, one) for one in arguments])
    for outcome, (module, *_) in zip(outcomes, arguments, strict=True):
        if isinstance(outcome, Exception):
            raise JobFailure(outcome, step, module) from outcome
    return outcomes
