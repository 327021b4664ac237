"""Which values of a function depend on parameters alone, so that they can be prepared once."""
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.rewriting.functions import argument_role
from mlir_npu.passes.rewriting.values import definition

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
    pending, seen = [value], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        op = definition(value)
        if op is not None:
            pending.extend(used_values(op))
        elif not _is_parameter(value):
            return False
    return True


def _is_parameter(value: ir.Value) -> bool:
    argument = ir.BlockArgument(value)
    function = argument.owner.owner.operation
    return function.name == "func.func" and argument_role(function, argument.arg_number) == PARAMETER
