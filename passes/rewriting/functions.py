"""The functions that passes on whole regions work on: those that are not kernels yet."""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import KERNEL, ROLE, entry, functions


def region_functions(module: ir.Operation) -> list[ir.Operation]:
    """Functions with a body of one block that are not kernels, in order."""
    return [
        function
        for function in functions(module)
        if len(function.regions[0].blocks) == 1 and KERNEL not in function.attributes
    ]


def region_blocks(module: ir.Operation) -> list[ir.Block]:
    return [entry(function) for function in region_functions(module)]


def argument_role(argument: ir.BlockArgument) -> str | None:
    """`npu.role` of a function's argument, None if it has none or belongs to another operation."""
    function = argument.owner.owner.operation
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[argument.arg_number])
    return ir.StringAttr(attributes[ROLE]).value if ROLE in attributes else None
