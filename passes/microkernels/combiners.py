"""Ops that join partial results, and what these start from."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir

# What a partial result starts from; for integers a function of their bits.
INTEGER_IDENTITIES = {
    "arith.addi": lambda bits: 0,
    "arith.muli": lambda bits: 1,
    "arith.ori": lambda bits: 0,
    "arith.xori": lambda bits: 0,
    "arith.andi": lambda bits: -1,
    "arith.maxsi": lambda bits: -(1 << bits - 1),
    "arith.minsi": lambda bits: (1 << bits - 1) - 1,
    "arith.maxui": lambda bits: 0,
    "arith.minui": lambda bits: -1,
}
IDENTITIES = {
    "arith.addf": 0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": float("-inf"),
    "arith.minimumf": float("inf"),
    "arith.maxnumf": float("-inf"),
    "arith.minnumf": float("inf"),
}


def combiner_of(block: ir.Block) -> str | None:
    """Name of the op that joins the last block argument with the rest of the region, or None."""
    output = block.arguments[len(block.arguments) - 1]
    uses = list(output.uses)
    *_, terminator = block.operations
    if len(uses) != 1 or len(terminator.operands) != 1:
        return None
    last = uses[0].owner.operation
    if last.name not in IDENTITIES | INTEGER_IDENTITIES or terminator.operands[0].owner != last:
        return None
    return last.name


def identity_of(combiner: str, element: ir.Type) -> ir.Attribute:
    if combiner in IDENTITIES:
        return ir.FloatAttr.get(element, IDENTITIES[combiner])
    bits = ir.IntegerType(element).width
    return ir.IntegerAttr.get(element, INTEGER_IDENTITIES[combiner](bits))
