"""The `npu` dialect itself. Every attribute, type and op class registers with it by inheritance."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ext


class Npu(ext.Dialect, name="npu"):
    """Tiles, moves between memories, and compute on tiles."""
