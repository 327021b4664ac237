"""Which values of a function depend on parameters alone, so that they can be prepared once."""

from collections.abc import Callable

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import definition
from mlir_npu.passes.rewriting.functions import argument_role

PARAMETER = "parameter"


def used_values(op: ir.Operation) -> list[ir.Value]:
    """Operands of `op`, and values from outside that its regions use."""
    found = list(op.operands)
    inside = set()

    def visit(nested: ir.Operation) -> ir.WalkResult:
        for region in nested.regions:
            for block in region.blocks:
                inside.update(block.arguments)
        if nested != op:
            found.extend(nested.operands)
            inside.update(nested.results)
        return ir.WalkResult.ADVANCE

    if len(op.regions):
        op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return [value for value in dict.fromkeys(found) if value not in inside]


def is_prepared(value: ir.Value) -> bool:
    """Whether parameters and constants alone determine `value`."""
    # Operands answer most questions; what regions use from outside is slower to find.
    return _comes_from_parameters(value, _operands) and _comes_from_parameters(value, used_values)


def _operands(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)


def _comes_from_parameters(
    value: ir.Value, inputs_of: Callable[[ir.Operation], list[ir.Value]]
) -> bool:
    pending, seen = [value], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = definition(value)
        if op is not None:
            pending.extend(reversed(inputs_of(op)))
        elif argument_role(ir.BlockArgument(value)) != PARAMETER:
            return False
    return True
