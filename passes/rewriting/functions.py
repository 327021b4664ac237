"""The functions that passes on whole regions work on: those that are not kernels yet."""

from mlir_npu.dialect.bindings import ir

KERNEL = "npu.kernel"
ROLE = "npu.role"


def region_functions(module: ir.Operation) -> list[ir.Operation]:
    """Functions with a body of one block that are not kernels, in order."""
    found = []
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if (
            op.name == "func.func"
            and len(op.regions[0].blocks) == 1
            and KERNEL not in op.attributes
        ):
            found.append(op)
    return found


def region_blocks(module: ir.Operation) -> list[ir.Block]:
    return [function.regions[0].blocks[0] for function in region_functions(module)]


def argument_attributes(function: ir.Operation) -> list[dict[str, ir.Attribute]]:
    """The attributes of every argument."""
    count = len(function.regions[0].blocks[0].arguments)
    if "arg_attrs" not in function.attributes:
        return [{} for _ in range(count)]
    attributes = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
    return [{named.name: named.attr for named in dictionary} for dictionary in attributes]


def argument_roles(function: ir.Operation) -> list[str | None]:
    """`npu.role` of every argument, None where it has none."""
    return [argument_role(argument) for argument in function.regions[0].blocks[0].arguments]


def argument_role(argument: ir.BlockArgument) -> str | None:
    """`npu.role` of a function's argument, None if it has none or belongs to another operation."""
    function = argument.owner.owner.operation
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[argument.arg_number])
    return ir.StringAttr(attributes[ROLE]).value if ROLE in attributes else None
