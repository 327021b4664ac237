"""Move a group of operations into a private function and call it in their place."""

from collections.abc import Sequence

from mlir_npu.dialect.bindings import func, ir
from mlir_npu.passes.kernels.walk import KERNEL, definition
from mlir_npu.passes.rewriting.dependence import used_values
from mlir_npu.passes.rewriting.values import before


def outline(
    module: ir.Operation, group: Sequence[ir.Operation], kind: str, name: str
) -> ir.Operation:
    """A call of the new function `name` in place of `group`, whose last op makes the results.

    The function takes every tensor that the group uses from outside, in order of first use; scalars
    must be made inside. Operations before the last are copied and stay, for whoever else uses them.
    Returns the function.
    """
    last = group[-1]
    outside = _outside_values(group)
    results = [result.type for result in last.results]
    inputs = [value.type for value in outside]
    with ir.InsertionPoint(module.regions[0].blocks[0]), last.location:
        function = func.FuncOp(name, (inputs, results), visibility="private")
        function.operation.attributes[KERNEL] = ir.StringAttr.get(kind)
        block = function.add_entry_block()
    with ir.InsertionPoint(block):
        known = dict(zip(outside, block.arguments, strict=True))
        for op in group:
            known.update(zip(op.results, clone_renamed(op, known).results, strict=True))
        func.ReturnOp([known[result] for result in last.results], loc=last.location)
    with before(last):
        call = func.CallOp(results, name, outside)
    for result, value in zip(last.results, call.operation.results, strict=True):
        result.replace_all_uses_with(value)
    last.erase()
    return function.operation


def _outside_values(group: Sequence[ir.Operation]) -> list[ir.Value]:
    inside = {result for op in group for result in op.results}
    used = dict.fromkeys(value for op in group for value in used_values(op))
    return [value for value in used if value not in inside]


def clone_renamed(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy of `op` here that uses `known[value]` instead of `value`, in its regions too."""
    copy = op.clone()

    def rename(nested: ir.Operation) -> ir.WalkResult:
        for i, value in enumerate(nested.operands):
            if value in known:
                nested.operands[i] = known[value]
        return ir.WalkResult.ADVANCE

    copy.walk(rename)
    return copy


def scalar_producers(ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """What makes the scalars that `ops` use: constants, arithmetic, extracted elements."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> None:
        for value in used_values(op):
            made_by = definition(value)
            if made_by is None or isinstance(value.type, ir.ShapedType) or made_by in found:
                continue
            visit(made_by)
            found.append(made_by)

    for op in ops:
        visit(op)
    return found
