"""Small modules on memrefs that follow the calling convention, lowered with upstream passes."""

from __future__ import annotations

from mlir_npu.dialect.bindings import PassManager, ir
from mlir_npu.runtime.kernel import Kernel
from mlir_npu.runtime.read_signature import read_signature

TO_LLVM = (
    "builtin.module(convert-linalg-to-loops,convert-scf-to-cf,"
    "convert-arith-to-llvm,convert-index-to-llvm,expand-strided-metadata,"
    "finalize-memref-to-llvm,convert-cf-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},reconcile-unrealized-casts)"
)

SCALE = """
func.func @main(%x: memref<{m}x{n}xf32> {{npu.role = "input"}},
                %y: memref<{m}x{n}xf32> {{npu.role = "output"}}) {{
  linalg.add ins(%x, %x : memref<{m}x{n}xf32>, memref<{m}x{n}xf32>) outs(%y : memref<{m}x{n}xf32>)
  return
}}"""

# y = x + 2 w, through workspace and scratch; @prepare computes 2 w
PREPARED = """
func.func @prepare(%w: memref<4xf32> {npu.role = "parameter"},
                   %p: memref<4xf32> {npu.role = "output"},
                   %ws: memref<64xi8> {npu.role = "workspace"},
                   %s: memref<64xi8> {npu.role = "scratch"}) {
  linalg.add ins(%w, %w : memref<4xf32>, memref<4xf32>) outs(%p : memref<4xf32>)
  return
}
func.func @main(%x: memref<4xf32> {npu.role = "input"}, %w: memref<4xf32> {npu.role = "parameter"},
                %p: memref<4xf32> {npu.role = "prepared"},
                %y: memref<4xf32> {npu.role = "output"},
                %ws: memref<64xi8> {npu.role = "workspace"},
                %s: memref<64xi8> {npu.role = "scratch"}) {
  %c0 = arith.constant 0 : index
  %t = memref.view %ws[%c0][] : memref<64xi8> to memref<4xf32>
  linalg.copy ins(%x : memref<4xf32>) outs(%t : memref<4xf32>)
  linalg.add ins(%t, %p : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
  return
}"""


def compile_text(text: str):
    """(kernel of @main, signature) of a module in text form."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        signature = read_signature(module)
        PassManager.parse(TO_LLVM).run(module.operation)
        return Kernel(module), signature
