"""Small readers of IR: functions, kernels, nested operations, uses, attributes."""

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir

KERNEL = "npu.kernel"
ROLE = "npu.role"


def nested(root: ir.Operation, *names: str) -> list[ir.Operation]:
    """Operations below `root` in program order, outer before inner; only those called `names`."""
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not names or op.name in names:
            found.append(op)
        return ir.WalkResult.ADVANCE

    for region in root.operation.regions:
        for block in region.blocks:
            for child in block.operations:
                child.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def functions(module: ir.Operation) -> list[ir.Operation]:
    """The functions with a body, in order."""
    top = module.operation.regions[0].blocks[0].operations
    return [op.operation for op in top if op.operation.name == "func.func" and op.regions[0].blocks]


def kernels(module: ir.Operation) -> list[ir.Operation]:
    return [function for function in functions(module) if KERNEL in function.attributes]


def entry(function: ir.Operation) -> ir.Block:
    return function.regions[0].blocks[0]


def terminator(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


def symbol(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def calls(module: ir.Operation, callee: str) -> list[ir.Operation]:
    """Every call of the function `callee`."""
    return [op for op in nested(module, "func.call") if called(op) == callee]


def called(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def users(value: ir.Value) -> list[ir.Operation]:
    """Operations that use `value`, each once."""
    found = []
    for use in value.uses:
        operation = use.owner.operation
        if operation not in found:
            found.append(operation)
    return found


def definition(value: ir.Value) -> ir.Operation | None:
    """The operation that makes `value`; None for a block argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def string(op: ir.Operation, name: str) -> str | None:
    return ir.StringAttr(op.attributes[name]).value if name in op.attributes else None


def integers(op: ir.Operation, name: str) -> tuple[int, ...]:
    """A dense integer array or a dense elements attribute, as a tuple."""
    return tuple(int(v) for v in op.attributes[name])


def constant_of(value: ir.Value) -> ir.Attribute | None:
    """The attribute of the `arith.constant` that makes `value`, or None."""
    made_by = definition(value)
    if made_by is None or made_by.name != "arith.constant":
        return None
    return made_by.attributes["value"]


def set_type(function: ir.Operation) -> None:
    """Make the function type agree with the entry block's arguments; the results stay."""
    results = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
    inputs = [argument.type for argument in entry(function).arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def argument_attributes(function: ir.Operation) -> list[dict[str, ir.Attribute]]:
    """The attributes of every argument by name."""
    dictionaries = map(ir.DictAttr, _argument_dictionaries(function))
    return [{named.name: named.attr for named in dictionary} for dictionary in dictionaries]


def _argument_dictionaries(function: ir.Operation) -> list[ir.Attribute]:
    if "arg_attrs" in function.attributes:
        return list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return [ir.DictAttr.get({}, function.context)] * len(entry(function).arguments)


def set_argument_attributes(function: ir.Operation, attributes) -> None:
    dictionaries = [ir.DictAttr.get(own) for own in attributes]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(dictionaries)


def argument_roles(function: ir.Operation) -> list[str | None]:
    """`npu.role` of every argument, None where it has none."""
    return [
        ir.StringAttr(own[ROLE]).value if ROLE in own else None
        for own in argument_attributes(function)
    ]


def add_argument(function: ir.Operation, type_: ir.Type, role: str | None = None) -> ir.Value:
    """Append an argument, with its role, to a function; the caller adapts the calls."""
    (argument,) = add_arguments(function, [type_], role)
    return argument


def add_arguments(
    function: ir.Operation, types: Sequence[ir.Type], role: str | None = None
) -> list[ir.Value]:
    """Several at once: regions have hundreds, which take long to go through."""
    others = _argument_dictionaries(function)
    made = [entry(function).add_argument(type_, function.location) for type_ in types]
    own = ir.DictAttr.get({ROLE: ir.StringAttr.get(role)} if role else {})
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([*others, *[own] * len(made)])
    set_type(function)
    return made
