"""Give every function its results as trailing arguments, so that the caller owns all memory.

A returned allocation becomes the argument itself; a returned view of an allocation becomes the
inverse view of the argument; anything else (an argument, a constant, a buffer that is returned
twice) is copied. Call sites allocate what they pass. The new arguments of functions that are not
kernels carry `npu.role = "output"`.

Before:
    func.func private @k(%x: memref<8xf32>) -> memref<8xf32> {
      %r = memref.alloc() ... return %r }
    func.func @main(%x: memref<8xf32>) -> memref<2x4xf32> {
      %0 = call @k(%x);  %1 = memref.expand_shape %0 [[0, 1]];  return %1 }
After:
    func.func private @k(%x: memref<8xf32>, %r: memref<8xf32>) { ... }
    func.func @main(%x: memref<8xf32>, %out: memref<2x4xf32> {npu.role = "output"}) {
      %0 = memref.collapse_shape %out [[0, 1]];  call @k(%x, %0) }
"""

from mlir_npu.dialect.bindings import func, ir, memref
from mlir_npu.passes.kernels.walk import (
    KERNEL,
    add_arguments,
    definition,
    entry,
    functions,
    nested,
    symbol,
    terminator,
)
from mlir_npu.passes.registry import NoOptions, fail, register_pass

VIEWS = ("memref.expand_shape", "memref.collapse_shape")
ALIGNMENT = 64


@register_pass("results-to-out-params")
def results_to_out_params(module: ir.Operation, options: NoOptions) -> None:
    defined = {symbol(function): function for function in functions(module)}
    for function in defined.values():
        for value in terminator(entry(function)).operands:
            if not isinstance(value.type, ir.MemRefType) or not value.type.has_static_shape:
                fail(function, f"'{symbol(function)}' returns {value.type}, not a static memref")
    for call in nested(module, "func.call"):
        if len(call.results):
            _allocate_results(call)
    for function in defined.values():
        if len(terminator(entry(function)).operands):
            _move_results(function)


def _allocate_results(call: ir.Operation) -> None:
    with ir.InsertionPoint(call), call.location:
        buffers = [_allocate(result.type) for result in call.results]
        operands = [*call.operands, *buffers]
        func.CallOp([], ir.FlatSymbolRefAttr(call.attributes["callee"]), operands)
    for result, buffer in zip(call.results, buffers):
        result.replace_all_uses_with(buffer)
    call.erase()


def _allocate(type_: ir.MemRefType) -> ir.Value:
    return memref.AllocOp(type_, [], [], alignment=ALIGNMENT).result


def _move_results(function: ir.Operation) -> None:
    role = None if KERNEL in function.attributes else "output"
    old_return = terminator(entry(function))
    _drop_results(function)
    types = [value.type for value in old_return.operands]
    for index, argument in enumerate(add_arguments(function, types, role)):
        _bind(old_return.operands[index], argument, old_return)
    with ir.InsertionPoint(old_return), old_return.location:
        func.ReturnOp([])
    old_return.erase()


def _drop_results(function: ir.Operation) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(type_.inputs, []))
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]


def _bind(value: ir.Value, argument: ir.Value, before: ir.Operation) -> None:
    """Make `argument` hold `value` when the function ends."""
    views, root = _trace(value)
    made_by = definition(root)
    if made_by is None or made_by.name != "memref.alloc" or made_by.block != before.block:
        with ir.InsertionPoint(before), before.location:
            memref.CopyOp(value, argument)
        return
    with ir.InsertionPoint.at_block_begin(before.block), made_by.location:
        for view in views:
            argument = _inverse(view, argument)
    root.replace_all_uses_with(argument)
    made_by.erase()


def _trace(value: ir.Value) -> tuple[list[ir.Operation], ir.Value]:
    """The reshaping views that lead to `value`, last first, and the buffer that they view."""
    views = []
    while (made_by := definition(value)) is not None and made_by.name in VIEWS:
        views.append(made_by)
        value = made_by.operands[0]
    return views, value


def _inverse(view: ir.Operation, value: ir.Value) -> ir.Value:
    """Turn `value`, which has the type of the view's result, back into the view's source."""
    type_ = view.operands[0].type
    groups = view.attributes["reassociation"]
    if view.name == "memref.expand_shape":
        return memref.CollapseShapeOp(type_, value, groups).result
    return memref.ExpandShapeOp(type_, value, groups, [], list(type_.shape)).result
