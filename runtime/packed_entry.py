"""Functions of many pointers -> functions of one pointer to all of them. Works on the LLVM dialect.

A region has hundreds of arguments. Passed one by one they would fill the stack twice, and LLVM
takes a second for it. Each is loaded where it is used instead.

Before:
    llvm.func @main(%x: !llvm.ptr, %y: !llvm.ptr) { llvm.call @kernel(%x, %y) }
After:
    llvm.func @main(%values: !llvm.ptr) { %x = load %values[0]  %y = load %values[1]
                                          llvm.call @kernel(%x, %y) }
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir


def pack_arguments(function: ir.Operation) -> None:
    """Raises ValueError unless all arguments are pointers and there is no result."""
    block = function.regions[0].blocks[0]
    pointer = ir.Type.parse("!llvm.ptr")
    type_ = str(ir.TypeAttr(function.attributes["function_type"]).value)
    if any(a.type != pointer for a in block.arguments) or not type_.startswith("!llvm.func<void "):
        raise ValueError(
            f"a function that Python calls takes pointers and returns nothing: {type_}"
        )
    count = len(block.arguments)
    values = block.add_argument(pointer, function.location)
    for index in range(count):
        _load_where_used(block.arguments[index], values, index, pointer)
    for index in reversed(range(count)):
        block.erase_argument(index)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse("!llvm.func<void (ptr)>"))
    if "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]


def _load_where_used(argument: ir.Value, values: ir.Value, index: int, pointer: ir.Type) -> None:
    for use in list(argument.uses):
        user = use.owner.operation
        with ir.InsertionPoint(user), user.location:
            slot = ir.Operation.create(
                "llvm.getelementptr",
                results=[pointer],
                operands=[values],
                attributes={
                    "rawConstantIndices": ir.DenseI32ArrayAttr.get([index]),
                    "elem_type": ir.TypeAttr.get(pointer),
                },
            )
            loaded = ir.Operation.create("llvm.load", results=[pointer], operands=[slot.result])
        user.operands[use.operand_number] = loaded.result
