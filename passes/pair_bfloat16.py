"""Compute on bfloat16 in memory as on pairs: the lower half of every word, and the upper one.

A bfloat16 is the upper half of a float. So 2n of them are n words, of which one shift and one mask
make two vectors of floats, and a shift and a mask make words of two vectors again: no lane crosses
another one, as it does where each vector is widened and narrowed alone. Two vectors that stand one
after the other in memory are loaded so, if all that is computed from them is elementwise, comes
from such loads, constants and scalars only, and ends in such stores. Values that are rounded in
between are rounded in their lanes.

Before:
    %0 = vector.load %x[%i] : vector<16xbf16>           %1 = arith.extf %0
    %2 = math.exp %1 : vector<16xf32>                   %3 = arith.truncf %2
    vector.store %3, %y[%i]
    ... the same at %i + 16
After:
    %0 = vector.load %x[%i] : vector<32xbf16>           %w = vector.bitcast %0 : vector<16xi32>
    %low = arith.shli %w, 16                            %high = arith.andi %w, 0xFFFF0000
    %2 = math.exp %low : vector<16xf32>                 %3 = math.exp %high : vector<16xf32>
    %4 = (rounded %2 >> 16) | (rounded %3 & 0xFFFF0000)
    vector.store %4, %y[%i] : vector<32xbf16>
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import nested
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.bfloat16_words import join, rounded_in_place, split
from mlir_npu.passes.rewriting.values import before
from mlir_npu.passes.rewriting.vector_cells import Cell, cells_of, successor


@register_pass("pair-bfloat16")
def pair_bfloat16(module: ir.Operation, options: NoOptions) -> None:
    stores = [op for op in nested(module, "vector.store") if _is_half(op.operands[0].type)]
    blocks: list[ir.Block] = []
    for store in stores:
        if store.block not in blocks:
            blocks.append(store.block)
    for block in blocks:
        _pair_block(block)


def _pair_block(block: ir.Block) -> None:
    waiting = [cell for cell in cells_of(block) if _is_of_halves(cell)]
    while waiting:
        first = waiting.pop(0)
        if (second := successor(first, waiting)) is not None:
            waiting.remove(second)
            _pair(first, second)


def _is_of_halves(cell: Cell) -> bool:
    """Whether it is floats in between, and halves in memory, of which there are an even number."""
    for op in cell.ops:
        for result in op.results:
            if _is_half(result.type) and not _is_at_the_edge(op):
                return False
    values = [store.operands[0] for store in cell.stores]
    made = all(_owner_name(value) == "arith.truncf" for value in values)
    return made and all(_is_half(load.results[0].type) for load in cell.loads)


def _is_at_the_edge(op: ir.Operation) -> bool:
    """Whether a half is loaded or rounded, and then made a float again or stored."""
    if op.name not in ("vector.load", "arith.truncf"):
        return False
    users = [use.owner.operation for use in op.results[0].uses]
    after = {"arith.extf"} if op.name == "vector.load" else {"arith.extf", "vector.store"}
    wide = [user.results[0].type for user in users if user.name == "arith.extf"]
    floats = all(isinstance(type_.element_type, ir.F32Type) for type_ in wide)
    source = op.operands[0].type
    if op.name == "arith.truncf" and not isinstance(source.element_type, ir.F32Type):
        return False
    return floats and all(user.name in after for user in users)


def _pair(first: Cell, second: Cell) -> None:
    truncations = [op for op in (*first.ops, *second.ops) if op.name == "arith.truncf"]
    for low, high in zip(first.loads, second.loads, strict=True):
        with before(low):
            parts = split(low.operands[0], low.operands[1], low.results[0].type)
        for load, part in zip((low, high), parts, strict=True):
            for use in list(load.results[0].uses):
                extension = use.owner.operation
                extension.results[0].replace_all_uses_with(part)
                extension.erase()
            load.erase()
    rounded = {op.results[0]: _round(op) for op in truncations}
    for low, high in zip(first.stores, second.stores, strict=True):
        halves = [store.operands[0] for store in (low, high)]
        with before(high):
            join([rounded[half] for half in halves], low.operands[1], low.operands[2])
        low.erase()
        high.erase()
    for truncation in truncations:
        truncation.erase()


def _round(truncation: ir.Operation) -> ir.Value:
    """The words whose upper halves are the result, which takes the place of its extensions."""
    with before(truncation):
        words, number = rounded_in_place(truncation.operands[0])
    for use in list(truncation.results[0].uses):
        user = use.owner.operation
        if user.name == "arith.extf":
            user.results[0].replace_all_uses_with(number)
            user.erase()
    return words


def _owner_name(value: ir.Value) -> str | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.name


def _is_half(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and isinstance(type_.element_type, ir.BF16Type)
