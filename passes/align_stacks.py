"""Have functions that compute on wide vectors begin their stack frame at a whole line.

Works on the LLVM dialect. LLVM decides late that vectors do not all fit into registers, when it can
no longer align the frame: those that wait in memory then lie across two lines, and each access to
them costs two.

Before:
    llvm.func @k(...) { ... vector<16xf32> ... }
After:
    llvm.func @k(...) attributes {passthrough = ["stackrealign"]} { ... vector<16xf32> ... }
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import nested
from mlir_npu.passes.registry import NoOptions, register_pass

# Bits of vectors that an ordinary frame, aligned to 16 bytes, does not suit.
WIDE = 256


@register_pass("align-stacks")
def align_stacks(module: ir.Operation, options: NoOptions) -> None:
    aligned = ir.ArrayAttr.get([ir.StringAttr.get("stackrealign")])
    for view in module.regions[0].blocks[0].operations:
        function = view.operation
        if function.name == "llvm.func" and any(map(_is_wide, nested(function))):
            function.attributes["passthrough"] = aligned


def _is_wide(op: ir.Operation) -> bool:
    return any(_bits(result.type) >= WIDE for result in op.results)


def _bits(type_: ir.Type) -> int:
    """Of a vector of numbers, 0 for other types."""
    if not isinstance(type_, ir.VectorType):
        return 0
    vector = ir.VectorType(type_)
    element = vector.element_type
    is_number = isinstance(element, (ir.FloatType, ir.IntegerType))
    return vector.shape[0] * element.width if is_number and vector.rank == 1 else 0
