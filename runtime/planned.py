"""What planning a module gives, as plain data that any process can read."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.runtime.signature import FunctionSignature


@dataclass(frozen=True)
class KernelSource:
    """A kernel to encode. text: what its code depends on; module: MLIR bytecode."""

    text: str
    module: bytes


@dataclass(frozen=True)
class Planned:
    """functions: those of the module that Python calls; driver: bytecode of the module with them,
    which calls the kernels."""

    functions: tuple[FunctionSignature, ...]
    driver: bytes
    kernels: tuple[KernelSource, ...]
