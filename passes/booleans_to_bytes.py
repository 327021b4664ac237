"""Keep booleans in memory as bytes, and compute with them as bits.

A vector of bits in memory would be packed; torch's booleans are bytes that are 0 or 1.

Before:
    linalg.generic ins(%x : memref<8xi1>) outs(%y : memref<8xi1>) {
      ^bb0(%a: i1, %b: i1):  %0 = arith.xori %a, %true : i1;  linalg.yield %0 : i1 }
After:
    linalg.generic ins(%x : memref<8xi8>) outs(%y : memref<8xi8>) {
      ^bb0(%a: i8, %b: i8):
        %0 = arith.trunci %a : i8 to i1;  %1 = arith.xori %0, %true : i1
        %2 = arith.extui %1 : i1 to i8;  linalg.yield %2 : i8 }
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.passes.kernels.walk import (
    constant_of,
    definition,
    functions,
    nested,
    set_type,
    terminator,
)
from mlir_npu.passes.registry import NoOptions, fail, register_pass
from mlir_npu.passes.rewriting.values import before

_JOINS = ("arith.andi", "arith.ori", "arith.xori")
# Ops that only say where memory is.
_MEMORY = ("memref.", "func.", "scf.")


@register_pass("booleans-to-bytes")
def booleans_to_bytes(module: ir.Operation, options: NoOptions) -> None:
    for op in nested(module, "memref.global"):
        _retype_global(op)
    for op in nested(module, "func.func"):
        if not op.regions[0].blocks:
            _retype_declaration(op)
    for function in functions(module):
        ops = nested(function)
        for op in ops:
            if op.name.startswith("linalg.") and len(op.regions):
                _retype_body(op)
            elif op.name == "memref.load" and _is_boolean(op.operands[0].type):
                _retype_load(op)
            elif op.name == "memref.store" and _is_boolean(op.operands[1].type):
                _retype_store(op)
        _retype_values(function, ops)
        set_type(function)


def _is_boolean(type_: ir.Type) -> bool:
    return isinstance(type_, ir.MemRefType) and str(type_.element_type) == "i1"


def _byte() -> ir.Type:
    return ir.IntegerType.get_signless(8)


def _bit() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def _retyped(type_: ir.MemRefType) -> ir.MemRefType:
    return ir.MemRefType.get(type_.shape, _byte(), type_.layout, type_.memory_space)


def _retype_declaration(function: ir.Operation) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [_retyped(t) if _is_boolean(t) else t for t in type_.inputs]
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(inputs, type_.results)
    )


def _retype_values(function: ir.Operation, ops: list[ir.Operation]) -> None:
    for region in [r for op in (function, *ops) for r in op.regions]:
        for block in region.blocks:
            for argument in block.arguments:
                if _is_boolean(argument.type):
                    argument.set_type(_retyped(argument.type))
    for op in ops:
        for result in op.results:
            if not _is_boolean(result.type):
                continue
            if not op.name.startswith(_MEMORY):
                fail(op, f"'{op.name}' makes {result.type}, which cannot become bytes")
            result.set_type(_retyped(result.type))


def _retype_body(op: ir.Operation) -> None:
    """The block of a linalg op on buffers, some of which hold booleans."""
    if op.name == "linalg.fill":
        _retype_fill(op)
        return
    block = op.regions[0].blocks[0]
    first = block.operations[0].operation
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        if not _is_boolean(operand.type):
            continue
        argument.set_type(_byte())
        uses = [(use.owner.operation, use.operand_number) for use in argument.uses]
        if not uses:
            continue
        with before(first):
            bit = arith.TruncIOp(_bit(), argument).result
        for owner, number in uses:
            owner.operands[number] = bit
    last = terminator(block)
    outputs = list(op.operands)[len(op.operands) - len(last.operands) :]
    arguments = list(block.arguments)[len(block.arguments) - len(outputs) :]
    for number, operand in enumerate(outputs):
        if _is_boolean(operand.type):
            with before(last):
                last.operands[number] = _byte_of(last.operands[number], arguments[number])


def _byte_of(bit: ir.Value, output: ir.Value) -> ir.Value:
    """A computed bit as a byte. What joins bits to an output of bytes joins bytes: a reduction
    keeps its form."""
    joined = definition(bit)
    if joined is None or joined.name not in _JOINS:
        return arith.ExtUIOp(_byte(), bit).result
    parts = [output if _is_bit_of(v, output) else v for v in joined.operands]
    if output not in parts:
        return arith.ExtUIOp(_byte(), bit).result
    parts = [v if v == output else arith.ExtUIOp(_byte(), v).result for v in parts]
    return ir.Operation.create(joined.name, results=[_byte()], operands=parts).result


def _is_bit_of(value: ir.Value, byte: ir.Value) -> bool:
    made_by = definition(value)
    return made_by is not None and made_by.name == "arith.trunci" and made_by.operands[0] == byte


def _retype_fill(op: ir.Operation) -> None:
    if not _is_boolean(op.operands[1].type):
        return
    value = constant_of(op.operands[0])
    with before(op):
        if value is None:
            op.operands[0] = arith.ExtUIOp(_byte(), op.operands[0]).result
        else:
            number = int(bool(ir.IntegerAttr(value).value))
            op.operands[0] = arith.ConstantOp(_byte(), number).result
    for argument in op.regions[0].blocks[0].arguments:
        argument.set_type(_byte())


def _retype_load(op: ir.Operation) -> None:
    uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
    op.results[0].set_type(_byte())
    with ir.InsertionPoint.after(op), op.location:
        bit = arith.TruncIOp(_bit(), op.results[0]).result
    for owner, number in uses:
        owner.operands[number] = bit


def _retype_store(op: ir.Operation) -> None:
    with before(op):
        op.operands[0] = arith.ExtUIOp(_byte(), op.operands[0]).result


def _retype_global(op: ir.Operation) -> None:
    type_ = ir.TypeAttr(op.attributes["type"]).value
    if not _is_boolean(type_):
        return
    op.attributes["type"] = ir.TypeAttr.get(_retyped(ir.MemRefType(type_)))
    if "initial_value" not in op.attributes:
        return
    bits = ir.DenseElementsAttr(op.attributes["initial_value"])
    tensor = ir.RankedTensorType.get(ir.MemRefType(type_).shape, _byte())
    if bits.is_splat:
        value = ir.IntegerAttr.get(_byte(), int(bool(ir.BoolAttr(bits.get_splat_value()).value)))
        op.attributes["initial_value"] = ir.DenseElementsAttr.get_splat(tensor, value)
        return
    values = [ir.IntegerAttr.get(_byte(), int(bit)) for bit in ir.DenseIntElementsAttr(bits)]
    op.attributes["initial_value"] = ir.DenseElementsAttr.get(values, tensor)
