"""Put what kernels of host parts keep from one computation to the next into scratch memory.

Plan-scratchpad then gives it a place, one for each thread. The computations themselves see plain
memory.

Before:
    func.func private @k(...) attributes {npu.kernel} {
      %a = memref.alloc() : memref<8xf32> ... }
After:
    func.func private @k(...) attributes {npu.kernel} {
      %s = memref.alloc() : memref<8xf32, #npu.space<"sram">>
      %a = memref.memory_space_cast %s : memref<8xf32, #npu.space<"sram">> to memref<8xf32> ... }
"""

from __future__ import annotations

from mlir_npu.dialect.attributes import SRAM, with_space
from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.passes.kernels.walk import kernels, nested
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.values import before


@register_pass("assign-scratch")
def assign_scratch(module: ir.Operation, options: NoOptions) -> None:
    for kernel in kernels(module):
        for op in nested(kernel, "memref.alloc"):
            type_ = ir.MemRefType(op.results[0].type)
            if type_.memory_space is None:
                _move(op, type_)


def _move(op: ir.Operation, type_: ir.MemRefType) -> None:
    with before(op):
        placed = memref.AllocOp(with_space(type_, SRAM), [], [], alignment=64)
        cast = memref.MemorySpaceCastOp(type_, placed.result)
    op.results[0].replace_all_uses_with(cast.result)
    op.erase()
