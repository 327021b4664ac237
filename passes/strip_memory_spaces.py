"""Drop memory spaces from types: on a CPU dram, sram and acc are one memory.

Before:
    %v = memref.load %a[%i] : memref<8xf32, #npu.space<"sram">>
    %c = memref.memory_space_cast %b : memref<8xf32> to memref<8xf32, #npu.space<"acc">>
After:
    %v = memref.load %a[%i] : memref<8xf32>
    (casts are gone, their uses read %b)
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.registry import NoOptions, register_pass


@register_pass("strip-memory-spaces")
def strip_memory_spaces(module: ir.Operation, options: NoOptions) -> None:
    casts: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.memory_space_cast":
            casts.append(op)
        for result in op.results:
            _strip_value(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    _strip_value(argument)
        if op.name == "func.func":
            _strip_signature(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    for cast in casts:
        cast.results[0].replace_all_uses_with(cast.operands[0])
        cast.erase()


def _strip_value(value: ir.Value) -> None:
    stripped = _strip(value.type)
    if stripped != value.type:
        value.set_type(stripped)


def _strip_signature(function: ir.Operation) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs, results = ([_strip(t) for t in types] for types in (type_.inputs, type_.results))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _strip(type_: ir.Type) -> ir.Type:
    if not isinstance(type_, ir.MemRefType) or type_.memory_space is None:
        return type_
    return ir.MemRefType.get(type_.shape, type_.element_type, type_.layout)
