"""The code of a region: what it takes to run it without MLIR, compiled or found in the cache."""

from __future__ import annotations

import contextlib
import contextvars
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlir_npu.runtime.compile_pool import After, Job
from mlir_npu.runtime.interface import Interface
from mlir_npu.runtime.kernel import Kernel
from mlir_npu.runtime.object_cache import ObjectCache, default_cache
from mlir_npu.runtime.region import CompiledRegion
from mlir_npu.runtime.signature import Signature, SignatureError
from mlir_npu.runtime.toolchain import digest, is_current
from mlir_npu.runtime.tuning import Tuning

if TYPE_CHECKING:
    from mlir_npu.passes.pipelines import Recipe
    from mlir_npu.runtime.planned import Planned

# what runs jobs: `run_here` or `run_apart`
Run = Callable[[list[Job], After], list]


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
    """What went wrong with a module, which is here as bytecode.

    step: "normalise", "plan" or "encode".
    """

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
    steps = _Steps(recipe, default_cache() if use_cache and is_current() else None)
    run([("normalise", (module, recipe))], steps.after)
    return steps.result(module)


class _Steps:
    """What follows from what: kernels are compiled while other functions are planned."""

    def __init__(self, recipe: Recipe, cache: ObjectCache | None) -> None:
        self._recipe = recipe
        self._cache = cache
        self._failure: JobFailure | None = None
        self._units: tuple[bytes, ...] = ()
        self._planned: dict[bytes, Planned] = {}  # by unit
        self._keys: dict[bytes, str] = {}  # module of a kernel -> its key
        self._kernels: dict[str, bytes | None] = {}  # by key; None: on its way
        self._drivers: dict[bytes, bytes] = {}  # by module

    def after(self, job: Job, outcome: Any) -> list[Job]:
        step, (module, *_) = job
        if isinstance(outcome, Exception):
            self._failure = self._failure or JobFailure(outcome, step, module)
            return []
        if step == "normalise":
            self._units = outcome
            return [("plan", (unit, self._recipe)) for unit in outcome]
        if step == "plan":
            self._planned[module] = outcome
            return self._to_encode(outcome)
        self._keep(module, outcome)
        return []

    def result(self, module: bytes) -> CompiledModule:
        """Raises JobFailure."""
        if self._failure is not None:
            raise self._failure from self._failure.cause
        planned = [self._planned[unit] for unit in self._units]
        try:
            signature = Signature.of(f for unit in planned for f in unit.functions)
        except SignatureError as error:
            raise JobFailure(error, "plan", module) from error
        drivers = (self._drivers[unit.driver] for unit in planned)
        kernels = (self._kernels[key] for key in sorted(self._kernels))
        return CompiledModule((*drivers, *kernels), signature)

    def _to_encode(self, planned: Planned) -> list[Job]:
        jobs = [("encode", (planned.driver, self._recipe, True))]
        for kernel in planned.kernels:
            key = digest("kernel", repr(self._recipe.encode), kernel.text)
            if key in self._kernels:
                continue
            self._kernels[key] = self._cache.get(key) if self._cache else None
            if self._kernels[key] is None:
                self._keys[kernel.module] = key
                jobs.append(("encode", (kernel.module, self._recipe, False)))
        return jobs

    def _keep(self, module: bytes, contents: bytes) -> None:
        key = self._keys.get(module)
        if key is None:
            self._drivers[module] = contents
            return
        self._kernels[key] = contents
        if self._cache:
            self._cache.put(key, contents)
