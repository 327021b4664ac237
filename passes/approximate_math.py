"""Replace elementary functions of f32 vectors by polynomials, a few units in the last place off.

The upstream lowering takes such ops apart into one library call per lane. Scalars, other element
types and functions that are not listed here stay as they are. What `relax-math` has marked gets
fewer terms. NaN, infinities, signed zeros and
denormal numbers come out as the functions have them.

Before:
    %y = math.exp %x : vector<16xf32>
After:
    %n = vector.fma %x, %log2_e, %rounder : vector<16xf32>
    ... polynomial of the remainder, scaled by 2^n
"""

from __future__ import annotations

from collections.abc import Callable

from mlir_npu.dialect.bindings import arith, ir, math
from mlir_npu.passes.approximations.algebra import Real
from mlir_npu.passes.approximations.error_function import erf, rough_erf
from mlir_npu.passes.approximations.exponential import exp, expm1, tanh
from mlir_npu.passes.approximations.logarithm import log, log1p
from mlir_npu.passes.approximations.power import power
from mlir_npu.passes.approximations.trigonometry import cos, sin
from mlir_npu.passes.kernels.walk import nested
from mlir_npu.passes.registry import NoOptions, register_pass

WHOLE_POWER = "math.fpowi"
FUNCTIONS: dict[str, Callable[..., Real]] = {
    "math.cos": cos,
    "math.erf": erf,
    "math.exp": exp,
    "math.expm1": expm1,
    "math.log": log,
    "math.log1p": log1p,
    "math.powf": power,
    "math.sin": sin,
    "math.tanh": tanh,
}
# of results that are marked by relax-math
ROUGH_FUNCTIONS: dict[str, Callable[..., Real]] = {"math.erf": rough_erf}


@register_pass("approximate-math")
def approximate_math(module: ir.Operation, options: NoOptions) -> None:
    for op in nested(module, WHOLE_POWER, *FUNCTIONS):
        if op.name == WHOLE_POWER and isinstance(op.results[0].type, ir.VectorType):
            op = _take_real_power(op)
        if op.name not in FUNCTIONS or not _is_f32_vector(op.results[0].type):
            continue
        with ir.InsertionPoint(op), op.location:
            result = _function_of(op)(*map(Real, op.operands))
        op.results[0].replace_all_uses_with(result.value)
        op.erase()


def _function_of(op: ir.Operation) -> Callable[..., Real]:
    if op.attributes["fastmath"] == ir.Attribute.parse("#arith.fastmath<afn>"):
        return ROUGH_FUNCTIONS.get(op.name, FUNCTIONS[op.name])
    return FUNCTIONS[op.name]


def _take_real_power(op: ir.Operation) -> ir.Operation:
    """Whole exponents as floats: upstream has no lowering for vectors of them."""
    with ir.InsertionPoint(op), op.location:
        exponent = arith.SIToFPOp(op.results[0].type, op.operands[1]).result
        power = math.PowFOp(op.operands[0], exponent).result
    op.results[0].replace_all_uses_with(power)
    op.erase()
    return power.owner.operation


def _is_f32_vector(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and isinstance(
        ir.VectorType(type_).element_type, ir.F32Type
    )
