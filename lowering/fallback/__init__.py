"""Runs host parts: LLVM, TorchInductor or eager, as the option `fallback` says."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from mlir_npu.errors import HostLoweringError
from mlir_npu.logs import warn_once
from mlir_npu.lowering.fallback.eager import compile_host_eager
from mlir_npu.lowering.fallback.inductor import compile_host_inductor
from mlir_npu.lowering.fallback.llvm import compile_host_llvm
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options

logger = logging.getLogger("mlir_npu.fallback")


@dataclass(frozen=True)
class HostPart:
    """A callable for a host part. engine: what runs it; reason: why not the engine that was asked for."""

    call: Callable
    engine: str
    reason: str | None = None


def compile_host(part: Part, options: Options) -> HostPart:
    """Compile with the chosen engine; what it cannot do runs in eager, with the reason recorded."""
    if options.fallback == "eager":
        return HostPart(compile_host_eager(part), "eager")
    engine = compile_host_llvm if options.fallback == "llvm" else compile_host_inductor
    try:
        return HostPart(engine(part, options), options.fallback)
    except HostLoweringError as error:
        # LLVM falls to eager by design (its allow-list is the rule); Inductor only if something is wrong
        if options.fallback == "inductor":
            warn_once(logger, error.reason, f"{part.name} runs in eager: {error.reason}")
        else:
            logger.info("%s runs in eager: %s", part.name, error.reason)
        return HostPart(compile_host_eager(part), "eager", error.reason)
