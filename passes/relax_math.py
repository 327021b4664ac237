"""Compute functions and quotients with fewer digits where they are rounded to bfloat16 at once.

Functions whose results become bfloat16 before anything else sees them get the flag `afn` of arith:
an approximation will do that keeps as many digits as are rounded to, and those of 1 - f(x) where
f(x) is nearly 1. Marked are the functions that have such an approximation (`approximate-math`), in
vectors and in the bodies of generics.

Vectors that are divided by one number, as in a softmax, are multiplied by its reciprocal, which
takes a fifth of the time. Both are scaled by a power of two, so that the reciprocal of a number
near the ends of the range is neither infinite nor zero.

Before:
    %0 = math.erf %x : vector<16xf32>
    %1 = arith.mulf %0, %y : vector<16xf32>
    %2 = arith.truncf %1 : vector<16xf32> to vector<16xbf16>
    %s = vector.broadcast %sum : f32 to vector<16xf32>
    %3 = arith.divf %x, %s : vector<16xf32>
    %4 = arith.truncf %3 : vector<16xf32> to vector<16xbf16>
After:
    %0 = math.erf %x fastmath<afn> : vector<16xf32>
    ...
    %scale = 2^64 if |%sum| < 2^-100, 2^-64 if |%sum| > 2^100, else 1
    %3 = %x * %scale * (1 / (%sum * %scale))
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import arith, ir, math, vector
from mlir_npu.passes.kernels.walk import nested, users
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.values import before

_FUNCTIONS = ("math.erf",)
# what a result may go through
_ARITHMETIC = {"arith.addf", "arith.subf", "arith.mulf", "arith.negf"}
# Beyond 2^±LARGE numbers are scaled by 2^∓SCALE.
LARGE, SCALE = 100, 64


@register_pass("relax-math")
def relax_math(module: ir.Operation, options: NoOptions) -> None:
    for op in nested(module, *_FUNCTIONS):
        if _is_rounded(op):
            op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<afn>")
    factors: dict[ir.Value, tuple[ir.Value, ir.Value]] = {}
    for op in nested(module, "arith.divf"):
        divisor = op.operands[1]
        if _is_one_number(divisor) and all(map(_rounds, users(op.results[0]))):
            if divisor not in factors:
                factors[divisor] = _factors(divisor)
            _multiply(op, *factors[divisor])


def _is_one_number(value: ir.Value) -> bool:
    """Whether all elements of a vector of f32 are the same scalar."""
    made_by = value.owner
    if isinstance(made_by, ir.Block) or made_by.name != "vector.broadcast":
        return False
    return isinstance(made_by.operands[0].type, ir.F32Type)


def _rounds(op: ir.Operation) -> bool:
    return op.name == "arith.truncf" and _is_bfloat16(op.results[0].type)


def _factors(divisor: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Vectors whose product is the reciprocal of `divisor`: a power of two, and the rest."""
    number, type_ = divisor.owner.operands[0], divisor.type

    def power(exponent: int) -> ir.Value:
        return arith.ConstantOp(number.type, 2.0**exponent).result

    with before(divisor.owner):
        size = math.AbsFOp(number).result
        small = arith.CmpFOp(arith.CmpFPredicate.OLT, size, power(-LARGE)).result
        large = arith.CmpFOp(arith.CmpFPredicate.OGT, size, power(LARGE)).result
        scale = arith.SelectOp(large, power(-SCALE), power(0)).result
        scale = arith.SelectOp(small, power(SCALE), scale).result
        reciprocal = arith.DivFOp(power(0), arith.MulFOp(number, scale).result).result
        return tuple(vector.BroadcastOp(type_, value).result for value in (scale, reciprocal))


def _multiply(division: ir.Operation, scale: ir.Value, reciprocal: ir.Value) -> None:
    with before(division):
        scaled = arith.MulFOp(division.operands[0], scale).result
        quotient = arith.MulFOp(scaled, reciprocal).result
    division.results[0].replace_all_uses_with(quotient)
    division.erase()


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
