"""Load, store, shuffle and select bfloat16 values as integers of their bits.

Works on the LLVM dialect. LLVM takes bfloat16 for a legal type on CPUs with AVX-512 BF16, and then
lacks instructions for some moves of single elements, which ends the process. Conversions to and
from f32, constants, and whatever computes, still see bfloat16.

Before:
    %0 = llvm.load %p : !llvm.ptr -> vector<8xbf16>
    %1 = llvm.shufflevector %0, %0 [1, 0] : vector<8xbf16>
    %2 = llvm.fpext %1 : vector<2xbf16> to vector<2xf32>
After:
    %0 = llvm.load %p : !llvm.ptr -> vector<8xi16>
    %1 = llvm.shufflevector %0, %0 [1, 0] : vector<8xi16>
    %2 = llvm.bitcast %1 : vector<2xi16> to vector<2xbf16>
    %3 = llvm.fpext %2 : vector<2xbf16> to vector<2xf32>
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import nested
from mlir_npu.passes.registry import NoOptions, register_pass

_MOVES = frozenset(
    {
        *("llvm.load", "llvm.store", "llvm.select", "llvm.freeze", "llvm.mlir.poison"),
        *("llvm.shufflevector", "llvm.extractelement", "llvm.insertelement"),
        *("llvm.br", "llvm.cond_br"),
    }
)


@register_pass("move-halves-as-integers")
def move_halves_as_integers(module: ir.Operation, options: NoOptions) -> None:
    for view in module.regions[0].blocks[0].operations:
        function = view.operation
        if function.name != "llvm.func" or not function.regions[0].blocks:
            continue
        if _in_signature(function):
            continue
        ops = nested(function)
        if not any(_is_half(result) for op in ops for result in op.results):
            continue  # most kernels: the rest takes longer than this
        computing = [op for op in ops if op.name not in _MOVES]
        reads = [(op, i) for op in computing for i, v in enumerate(op.operands) if _is_moved(v)]
        for result in [result for op in computing for result in op.results if _is_half(result)]:
            _pass_on_as_integer(result)
        for op, index in reads:
            _read_as_half(op, index)
        for op in ops:
            if op.name in _MOVES:
                _retype(op)
        for block in function.regions[0].blocks:
            for argument in block.arguments:
                if _is_half(argument):
                    argument.set_type(_integer(argument.type))


def _is_half(value: ir.Value) -> bool:
    type_ = value.type
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return isinstance(element, ir.BF16Type)


def _integer(type_: ir.Type) -> ir.Type:
    bits = ir.IntegerType.get_signless(16)
    return ir.VectorType.get(type_.shape, bits) if isinstance(type_, ir.VectorType) else bits


def _in_signature(function: ir.Operation) -> bool:
    return any(_is_half(argument) for argument in function.regions[0].blocks[0].arguments)


def _bitcast(value: ir.Value, type_: ir.Type, ip: ir.InsertionPoint) -> ir.Value:
    return ir.Operation.create(
        "llvm.bitcast", results=[type_], operands=[value], loc=value.location, ip=ip
    ).results[0]


def _is_moved(value: ir.Value) -> bool:
    """Whether a bfloat16 value comes from a move, which will make an integer of it."""
    from_block = isinstance(value.owner, ir.Block)
    return _is_half(value) and (from_block or value.owner.name in _MOVES)


def _read_as_half(op: ir.Operation, index: int) -> None:
    value = op.operands[index]
    op.operands[index] = _bitcast(value, value.type, ir.InsertionPoint(op))


def _pass_on_as_integer(result: ir.Value) -> None:
    uses = [(use.owner.operation, use.operand_number) for use in result.uses]
    if moves := [use for use in uses if use[0].name in _MOVES]:
        cast = _bitcast(result, _integer(result.type), ir.InsertionPoint.after(result.owner))
        for op, index in moves:
            op.operands[index] = cast


def _retype(op: ir.Operation) -> None:
    for result in op.results:
        if _is_half(result):
            result.set_type(_integer(result.type))
