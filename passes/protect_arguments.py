"""Forbid bufferisation to write into the arguments of a region.

The arguments of functions that are not kernels are the caller's tensors. Upstream bufferisation may
reuse an argument of a public function as the place of a result; with this mark it copies instead.
Bufferisation takes the mark away again.

Before:
    func.func @main(%x: tensor<8xf32> {npu.role = "input"})
After:
    func.func @main(%x: tensor<8xf32> {bufferization.writable = false, npu.role = "input"})
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import (
    KERNEL,
    argument_attributes,
    functions,
    set_argument_attributes,
)
from mlir_npu.passes.registry import NoOptions, register_pass

WRITABLE = "bufferization.writable"


@register_pass("protect-arguments")
def protect_arguments(module: ir.Operation, options: NoOptions) -> None:
    for function in functions(module):
        if KERNEL in function.attributes:
            continue
        protected = []
        for attributes in argument_attributes(function):
            protected.append(attributes | {WRITABLE: ir.BoolAttr.get(False)})
        set_argument_attributes(function, protected)
