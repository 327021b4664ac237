"""Erase run-time checks that block fusion and vectorisation.

torch-mlir puts a `cf.assert` into the body of a `linalg.generic` to say which inputs its lowering
does not expect, such as 0 in a reciprocal; PyTorch defines the result there (infinity), and so does
the arithmetic. Checks in bodies and checks whose condition is the constant true go; others stay.

Before:
    %r = linalg.generic {...} ins(%x) { %ok = arith.cmpf one, %in, %zero
                                        cf.assert %ok, "unimplemented: tensor with zero element"
                                        %y = arith.divf %one, %in  linalg.yield %y }
After:
    %r = linalg.generic {...} ins(%x) { %y = arith.divf %one, %in  linalg.yield %y }
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.values import defined_by, erase_if_unused

ASSERT = "cf.assert"


@register_pass("strip-asserts")
def strip_asserts(module: ir.Operation, options: NoOptions) -> None:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == ASSERT and (_is_in_body(op) or _is_true(op.operands[0])):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for op in found:
        condition = op.operands[0]
        op.erase()
        erase_if_unused(condition)


def _is_in_body(op: ir.Operation) -> bool:
    return op.parent.operation.name.startswith("linalg.")


def _is_true(condition: ir.Value) -> bool:
    constant = defined_by(condition, "arith.constant")
    return constant is not None and ir.IntegerAttr(constant.attributes["value"]).value != 0
