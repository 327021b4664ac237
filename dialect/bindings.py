"""The one place that imports MLIR, so that the name and version of the bindings appear once.

Everything else writes `from mlir_npu.dialect.bindings import ir, arith, ...`. Nothing here imports
torch. The op classes of a dialect are imported when they are first asked for: all of them cost more
than starting the rest of npu-opt.
"""

from __future__ import annotations

import importlib
import sys
import threading
import types
from typing import Any

from torch_mlir import ir
from torch_mlir._mlir_libs import _torchMlir
from torch_mlir.dialects import ext
from torch_mlir.passmanager import PassManager

__all__ = ["PassManager", "ext", "ir", "make_context"]

# Name -> module, or module and attribute, imported on first use.
_ON_DEMAND = {
    "ExecutionEngine": ("torch_mlir.execution_engine", "ExecutionEngine"),
    "affine": ("torch_mlir.dialects.affine", None),
    "arith": ("torch_mlir.dialects.arith", None),
    "bufferization": ("torch_mlir.dialects.bufferization", None),
    "cf": ("torch_mlir.dialects.cf", None),
    "func": ("torch_mlir.dialects.func", None),
    "linalg": ("torch_mlir.dialects.linalg", None),
    "llvm": ("torch_mlir.dialects.llvm", None),
    "math": ("torch_mlir.dialects.math", None),
    "memref": ("torch_mlir.dialects.memref", None),
    "rewrite": ("torch_mlir.rewrite", None),
    "scf": ("torch_mlir.dialects.scf", None),
    "structured": ("torch_mlir.dialects.transform.structured", None),
    "tensor": ("torch_mlir.dialects.tensor", None),
    "transform": ("torch_mlir.dialects.transform", None),
    "vector": ("torch_mlir.dialects.vector", None),
}

_LOAD_LOCK = threading.Lock()

# Whenever an op or attribute becomes a Python object, the bindings look for a module of its dialect
# and remember only that they found one: without it they would search the import path each time.
sys.modules.setdefault("torch_mlir.dialects.npu", types.ModuleType("torch_mlir.dialects.npu"))


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module_name, attribute = _ON_DEMAND[name]
    module = importlib.import_module(module_name)
    globals()[name] = getattr(module, attribute) if attribute else module
    return globals()[name]


def make_context() -> ir.Context:
    """A new context with the torch dialect registered and the npu dialect loaded.

    Contexts stay single-threaded: a worker thread that needs a Python verifier would wait for the
    GIL for ever.
    """
    context = ir.Context()
    _torchMlir.register_dialect(context)
    _load_npu(context)
    return context


def _load_npu(context: ir.Context) -> None:
    from mlir_npu.dialect.npu import Npu

    # ext keeps the IRDL module in a class attribute between two steps of load(), so loading is
    # serialised; the attribute is cleared because it would keep the last context alive.
    with _LOAD_LOCK, context:
        if context.is_dialect_loaded(Npu.DIALECT_NAMESPACE):
            return
        Npu.load()
        Npu._mlir_module = None
