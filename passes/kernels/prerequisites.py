"""What a pass needs to have been done before it: an error names the pass that was left out."""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.structured import is_linalg
from mlir_npu.passes.kernels.walk import KERNEL, functions, nested
from mlir_npu.passes.registry import fail


def require_kernels(module: ir.Operation) -> None:
    """All computations stand in kernels."""
    for function in functions(module):
        if KERNEL in function.attributes:
            continue
        for op in nested(function):
            if is_linalg(op):
                fail(op, f"'{op.name}' stands outside of a kernel; run form-kernels first")


def require_buffers(module: ir.Operation) -> None:
    """Computations work on memrefs."""
    for function in functions(module):
        for op in nested(function):
            if is_linalg(op) and op.results:
                fail(op, f"'{op.name}' works on tensors; run one-shot-bufferize first")
