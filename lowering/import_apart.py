"""Import of a region by a process that compiles, so that this one needs no MLIR.

A fault in torch-mlir then ends that process and not the program, and its memory is given back when
it has nothing to do any more. What travels is text; no contents of parameters. Loading this loads
neither torch nor MLIR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir_npu.dialect.target import Target


@dataclass(frozen=True)
class TorchText:
    """A module of the torch dialect. operators: names of operations -> "file:line" of the first
    that has it, if known."""

    text: str
    operators: dict[str, str | None]


@dataclass(frozen=True)
class ImportRequest:
    """roles: of the arguments; threads: fixed number of threads, if any."""

    graph: TorchText
    roles: tuple[str, ...]
    target: Target
    threads: int | None

    def run(self) -> bytes:
        """The region in linalg on tensors, as bytecode. Raises RegionImportError."""
        from mlir_npu.dialect.bindings import ir
        from mlir_npu.dialect.target import set_target, set_threads
        from mlir_npu.lowering.torch_to_linalg import lower_torch, parse_torch
        from mlir_npu.runtime.bytecode import bytecode

        module = parse_torch(self.graph)
        lower_torch(module, self.roles)
        with module.context, ir.Location.unknown():
            set_target(module.operation, self.target)
            set_threads(module.operation, self.threads)
        return bytecode(module)
