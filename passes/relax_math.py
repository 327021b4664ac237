"""Mark functions whose results become bfloat16 before anything else sees them.

They get the flag `afn` of arith: an approximation will do that keeps as many digits as are rounded
to, and those of 1 - f(x) where f(x) is nearly 1. Marked are the functions that have such an
approximation (`approximate-math`), in vectors and in the bodies of generics.

Before:
    %0 = math.erf %x : vector<16xf32>
    %1 = arith.mulf %0, %y : vector<16xf32>
    %2 = arith.truncf %1 : vector<16xf32> to vector<16xbf16>
After:
    %0 = math.erf %x fastmath<afn> : vector<16xf32>
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import nested, users
from mlir_npu.passes.registry import NoOptions, register_pass

_FUNCTIONS = ("math.erf",)
# what a result may go through
_ARITHMETIC = {"arith.addf", "arith.subf", "arith.mulf", "arith.negf"}


@register_pass("relax-math")
def relax_math(module: ir.Operation, options: NoOptions) -> None:
    for op in nested(module, *_FUNCTIONS):
        if _is_rounded(op):
            op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<afn>")


def _is_rounded(op: ir.Operation) -> bool:
    for user in users(op.results[0]):
        if user.name == "arith.truncf" and _is_bfloat16(user.results[0].type):
            continue
        if user.name not in _ARITHMETIC or not _is_rounded(user):
            return False
    return True


def _is_bfloat16(type_: ir.Type) -> bool:
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return isinstance(element, ir.BF16Type)
