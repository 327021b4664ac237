"""Runs host parts: LLVM, TorchInductor or eager, as the option `fallback` says."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from mlir_npu.errors import HostLoweringError, StrictError
from mlir_npu.logs import warn_once
from mlir_npu.lowering.fallback.eager import compile_host_eager
from mlir_npu.lowering.fallback.inductor import compile_host_inductor
from mlir_npu.lowering.fallback.llvm import RefusedCallsError, compile_host_llvm
from mlir_npu.lowering.fallback.split_part import compile_in_pieces
from mlir_npu.lowering.internal_error import describe_internal_error
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.view_results import take_out_views
from mlir_npu.options import Options

logger = logging.getLogger("mlir_npu.fallback")


@dataclass(frozen=True)
class HostPart:
    """A callable for a part. engine: what runs it; reason: why not what was asked for."""

    call: Callable
    engine: str
    reason: str | None = None


def compile_host(part: Part, options: Options) -> HostPart:
    """Compile with the chosen engine; what it cannot do runs in eager, with the reason recorded.

    LLVM leaves parts to eager by design: its list of operators is the rule, so that is logged at
    INFO. From Inductor, and from errors that nobody foresaw, it is a warning, and a StrictError
    with options.strict.
    """
    if options.fallback == "eager":
        return HostPart(compile_host_eager(part), "eager")
    try:
        if options.fallback == "llvm":
            return _compile_llvm(part, options)
        return HostPart(compile_host_inductor(part, options), "inductor")
    except HostLoweringError as error:
        reason, expected = error.reason, options.fallback == "llvm"
    except Exception as error:  # a fault of ours must not cost users their program
        logger.debug("%s: internal error", part.name, exc_info=True)
        reason, expected = describe_internal_error(error), False
    if expected:
        logger.info("%s runs in eager: %s", part.name, reason)
    elif options.strict:
        raise StrictError(
            f"{part.name} does not compile with fallback={options.fallback!r}: {reason}"
        )
    else:
        message = f"mlir_npu part {part.name} runs in eager, not in {options.fallback}: {reason}"
        warn_once(logger, reason, message)
    return HostPart(compile_host_eager(part), "eager", reason)


def _compile_llvm(part: Part, options: Options) -> HostPart:
    """Raises HostLoweringError."""
    try:
        return HostPart(_compile_whole(part, options), "llvm")
    except RefusedCallsError as error:
        pieces = compile_in_pieces(part, error.calls, lambda one: _compile_piece(one, options))
        if pieces is None:
            raise
        logger.info("%s runs in part in eager: %s", part.name, error.reason)
        return HostPart(pieces, "llvm and eager", error.reason)


def _compile_whole(part: Part, options: Options) -> Callable:
    sharing = take_out_views(part)
    if sharing is None:
        return compile_host_llvm(part, options)
    if sharing.is_all:
        raise HostLoweringError("it makes views, which eager does without moving data")
    return sharing.around(compile_host_llvm(sharing.compiled, options))


def _compile_piece(part: Part, options: Options) -> Callable:
    try:
        return _compile_llvm(part, options).call
    except HostLoweringError as error:
        logger.info("%s runs in eager: %s", part.name, error.reason)
        return compile_host_eager(part)
