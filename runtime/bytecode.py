"""Modules as bytes."""

from __future__ import annotations

import io

from mlir_npu.dialect.bindings import ir


def bytecode(module: ir.Module) -> bytes:
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()
