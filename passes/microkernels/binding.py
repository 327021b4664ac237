"""Tie the operands of an accumulator group to the loops of its compute op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.microkernels.accumulation import Accumulation, Epilogue
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup
from mlir_npu.passes.microkernels.buffers import (
    Operand,
    mapped_operand,
    operand_of,
    static_strides,
)


@dataclass(frozen=True)
class BoundGroup:
    """Operands of a group with a stride per loop, the extents, how accumulators begin and end."""

    operands: tuple[Operand, ...]
    extents: tuple[int, ...]
    accumulation: Accumulation

    def dim(self, position: int) -> Dim:
        return Dim(self.extents[position], tuple(o.strides[position] for o in self.operands))

    def dims(self, positions: Sequence[int]) -> list[Dim]:
        return [self.dim(p) for p in positions]


def operand_maps(op: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(m).value for m in op.attributes["indexing_maps"]]


def integers(op: ir.Operation, name: str) -> list[int]:
    return [int(v) for v in ir.DenseI64ArrayAttr(op.attributes[name])]


def strides_of(buffer: ir.Value) -> list[int]:
    return static_strides(ir.MemRefType(buffer.type))


def shape_of(buffer: ir.Value) -> list[int]:
    return list(ir.MemRefType(buffer.type).shape)


def bind_group(
    group: AccumulatorGroup,
    inputs: Sequence[Operand],
    output_loops: Sequence[int],
    extents: Sequence[int],
) -> BoundGroup:
    """`output_loops[i]` is the loop that walks dimension i of the accumulator; `inputs` come first.

    Raises NotLinearError for operands of the drain that no strides describe.
    """
    accumulator = group.compute.operands[-1]
    operands = list(inputs)
    memory, epilogue = None, None
    if group.drain is None:
        strides = _scatter(strides_of(accumulator), output_loops, len(extents))
        memory = len(operands)
        operands.append(operand_of(accumulator, strides))
    else:
        first = len(operands)
        operands += _drain_operands(group.drain, _wide_loops(output_loops, extents), len(extents))
        epilogue = Epilogue(
            group.drain.regions[0].blocks[0],
            tuple(range(first, len(operands) - 1)),
            (len(operands) - 1,),
        )
    initial = group.fill.attributes["value"] if group.fill is not None else None
    return BoundGroup(tuple(operands), tuple(extents), Accumulation(initial, memory, epilogue))


def _wide_loops(loops: Sequence[int], extents: Sequence[int]) -> list[int]:
    return [loop for loop in loops if extents[loop] > 1]


def _drain_operands(drain: ir.Operation, wide_loops: Sequence[int], loops: int) -> list[Operand]:
    """Operands of the drain but its accumulator, on the loops of the compute op.

    Both see the accumulator in one order of dimensions, extents of one aside.
    """
    accumulator_map, *maps = operand_maps(drain)
    accumulator, *rest = drain.operands
    # Drain loop d walks the accumulator dimension whose map result is d.
    wide = [
        ir.AffineDimExpr(expression).position
        for expression, extent in zip(accumulator_map.results, shape_of(accumulator), strict=True)
        if extent > 1
    ]
    to_loop = dict(zip(wide, wide_loops, strict=True))
    return [_reorder(mapped_operand(v, m), to_loop, loops) for v, m in zip(rest, maps, strict=True)]


def _reorder(operand: Operand, to_loop: dict[int, int], loops: int) -> Operand:
    strides = [0] * loops
    for position, loop in to_loop.items():
        strides[loop] = operand.strides[position]
    return Operand(operand.flat, operand.start, tuple(strides), operand.element)


def _scatter(values: Sequence[int], positions: Sequence[int], count: int) -> list[int]:
    spread = [0] * count
    for value, position in zip(values, positions, strict=True):
        spread[position] = value
    return spread
