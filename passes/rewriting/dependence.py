"""Which values of a function depend on parameters alone, so that they can be prepared once."""
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.rewriting.functions import argument_roles

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


def parameter_values(function: ir.Operation) -> set[ir.Value]:
    """Values that parameters and constants determine, constants and parameters included."""
    block = function.regions[0].blocks[0]
    roles = zip(block.arguments, argument_roles(function), strict=True)
    found = {argument for argument, role in roles if role == PARAMETER}
    for view in block.operations:
        if all(value in found for value in used_values(view.operation)):
            found.update(view.operation.results)
    return found
