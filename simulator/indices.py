"""Index arithmetic as Python functions: ops of arith on integers, and affine maps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.errors import SimulationError

# As the values are indices and never wrap, signed and unsigned ops are the same.
BINARY: dict[str, Callable] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.maxsi": max,
    "arith.maxui": max,
    "arith.divui": operator.floordiv,
    "arith.remui": operator.mod,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "arith.remsi": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}
CASTS = ("arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi", "arith.trunci")
# By the number of the predicate in arith.cmpi: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
COMPARISONS = (
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.lt, operator.le, operator.gt, operator.ge),
)
AFFINE = {
    "affine.apply": lambda values: values[0],
    "affine.min": min,
    "affine.max": max,
}


def index_function(op: ir.Operation) -> Callable | None:
    """A function of the operands' values that gives the result of `op`; None for other ops."""
    if op.name in BINARY:
        return BINARY[op.name]
    if op.name in CASTS:
        return lambda value: value
    if op.name == "arith.cmpi":
        return COMPARISONS[ir.IntegerAttr(op.attributes["predicate"]).value]
    if op.name == "arith.select":
        return lambda condition, one, other: one if condition else other
    if op.name in AFFINE:
        return _affine_function(op, AFFINE[op.name])
    return None


def _affine_function(op: ir.Operation, choose: Callable[[Sequence[int]], int]) -> Callable:
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    results = [_expression(op, result, map_.n_dims) for result in map_.results]
    if len(results) == 1:
        return lambda *operands: results[0](operands)
    return lambda *operands: choose([result(operands) for result in results])


def _expression(op: ir.Operation, e: ir.AffineExpr, dims: int) -> Callable[[Sequence[int]], int]:
    if isinstance(e, ir.AffineConstantExpr):
        constant = e.value
        return lambda values: constant
    if isinstance(e, ir.AffineDimExpr | ir.AffineSymbolExpr):
        position = e.position + (dims if isinstance(e, ir.AffineSymbolExpr) else 0)
        return lambda values: values[position]
    for kind, combine in _AFFINE_BINARY.items():
        if isinstance(e, kind):
            left, right = _expression(op, e.lhs, dims), _expression(op, e.rhs, dims)
            return lambda values: combine(left(values), right(values))
    raise SimulationError(op, f"affine expression '{e}' is not known")


_AFFINE_BINARY = {
    ir.AffineAddExpr: operator.add,
    ir.AffineMulExpr: operator.mul,
    ir.AffineModExpr: operator.mod,
    ir.AffineFloorDivExpr: operator.floordiv,
    ir.AffineCeilDivExpr: lambda a, b: -(-a // b),
}
