"""Rules of what must hold at the end of a stage: each yields the operations that break it."""

from collections.abc import Callable, Iterator

from mlir_npu.dialect.bindings import ir

Violation = tuple[ir.Operation, str]
Rule = Callable[[ir.Operation], Iterator[Violation]]
