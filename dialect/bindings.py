"""The one place that imports MLIR, so that the name and version of the bindings appear once.

Everything else writes `from mlir_npu.dialect.bindings import ir, arith, ...`. Nothing here imports torch,
except `fx_importer`, which is called by the lowering only.
"""

from __future__ import annotations

import threading

from torch_mlir import ir, rewrite
from torch_mlir.dialects import (
    affine,
    arith,
    bufferization,
    cf,
    ext,
    func,
    linalg,
    llvm,
    math,
    memref,
    scf,
    tensor,
    transform,
    vector,
)
from torch_mlir.dialects import torch as _torch_dialect
from torch_mlir.dialects.transform import structured
from torch_mlir.execution_engine import ExecutionEngine
from torch_mlir.passmanager import PassManager

__all__ = [
    "ExecutionEngine",
    "PassManager",
    "affine",
    "arith",
    "bufferization",
    "cf",
    "ext",
    "func",
    "fx_importer",
    "ir",
    "linalg",
    "llvm",
    "make_context",
    "math",
    "memref",
    "rewrite",
    "scf",
    "structured",
    "tensor",
    "transform",
    "vector",
]

_LOAD_LOCK = threading.Lock()


def make_context() -> ir.Context:
    """A new context with the torch dialect registered and the npu dialect loaded.

    Contexts stay single-threaded: a worker thread that needs a Python verifier would wait for the GIL.
    """
    context = ir.Context()
    _torch_dialect.register_dialect(context)
    _load_npu(context)
    return context


def fx_importer() -> type:
    """torch-mlir's FxImporter class; the import pulls in torch."""
    from torch_mlir.extras.fx_importer import FxImporter

    return FxImporter


def _load_npu(context: ir.Context) -> None:
    from mlir_npu.dialect.npu import Npu

    # ext keeps the IRDL module in a class attribute between two steps of load(), so loading is
    # serialised; the attribute is cleared because it would keep the last context alive.
    with _LOAD_LOCK, context:
        if context.is_dialect_loaded(Npu.DIALECT_NAMESPACE):
            return
        Npu.load()
        Npu._mlir_module = None
