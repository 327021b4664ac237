"""Ops of the vector unit, each with a region of scalar arith/math ops: eltwise, reduce, drain, yield.

Indexing maps and regions read as in linalg.generic: one map per operand, one block argument per operand
in operand order, and `npu.yield` gives the new element of every output.
"""

# No postponed annotations here: ext reads the classes themselves.
from collections.abc import Sequence
from typing import Any

from mlir_npu.dialect.attributes import ACC, SRAM
from mlir_npu.dialect.base import Npu
from mlir_npu.dialect.bindings import ext, ir
from mlir_npu.dialect.checks import DYNAMIC, check_memref, check_segments, check_space, error
from mlir_npu.dialect.input_slots import INPUT_SLOTS, MAX_INPUTS, with_input_list
from mlir_npu.dialect.effects import AccumulateEffects, OverwriteEffects

ITERATOR_KINDS = ("parallel", "reduction")


class YieldOp(Npu.Operation, name="yield", traits=[ir.IsTerminatorTrait]):
    """Ends the region of a vector-unit op with the new output elements."""

    values: Sequence[ext.Operand[Any]]


@with_input_list
class EltwiseOp(Npu.Operation, name="eltwise", traits=[OverwriteEffects]):
    """output[map(i)] = region(inputs[map(i)]...) for every point i of an all-parallel iteration space."""

    __annotations__.update(INPUT_SLOTS)
    output: ext.Operand[Any]
    indexing_maps: ir.ArrayAttr
    body: ir.Region

    def verify_invariants(self) -> bool:
        if not check_segments(self, MAX_INPUTS + 1):
            return False
        operands = [*self.inputs, self.output]
        return _check_operands(self, operands, SRAM) and check_domain(self, operands)

    def verify_region_invariants(self) -> bool:
        return _check_body(self, [*self.inputs, self.output])


@with_input_list
class ReduceOp(Npu.Operation, name="reduce", traits=[AccumulateEffects]):
    """output[map(i)] = region(inputs[map(i)]..., output[map(i)]) over parallel and reduction dimensions."""

    __annotations__.update(INPUT_SLOTS)
    output: ext.Operand[Any]
    indexing_maps: ir.ArrayAttr
    iterator_types: ir.ArrayAttr
    body: ir.Region

    def verify_invariants(self) -> bool:
        if not check_segments(self, MAX_INPUTS + 1):
            return False
        operands = [*self.inputs, self.output]
        kinds = [ir.StringAttr(kind).value for kind in self.iterator_types]
        unknown = [kind for kind in kinds if kind not in ITERATOR_KINDS]
        if unknown:
            return error(self, f"'iterator_types' must be parallel or reduction, got '{unknown[0]}'")
        return (
            _check_operands(self, operands[:-1], SRAM)
            and _check_operands(self, operands[-1:], SRAM, ACC)
            and check_domain(self, operands, len(kinds))
        )

    def verify_region_invariants(self) -> bool:
        return _check_body(self, [*self.inputs, self.output])


@with_input_list
class DrainOp(Npu.Operation, name="drain", traits=[OverwriteEffects]):
    """output[map(i)] = region(accumulator[map(i)], inputs[map(i)]...): the way out of the accumulators."""

    accumulator: ext.Operand[Any]
    __annotations__.update(INPUT_SLOTS)
    output: ext.Operand[Any]
    indexing_maps: ir.ArrayAttr
    body: ir.Region

    def verify_invariants(self) -> bool:
        if not check_segments(self, MAX_INPUTS + 2):
            return False
        operands = [self.accumulator, *self.inputs, self.output]
        return (
            _check_operands(self, operands[:1], ACC)
            and _check_operands(self, operands[1:], SRAM)
            and check_domain(self, operands)
        )

    def verify_region_invariants(self) -> bool:
        return _check_body(self, [self.accumulator, *self.inputs, self.output])


def check_domain(op: ir.OpView, operands: Sequence[ir.Value], dimensions: int | None = None) -> bool:
    """One map per operand; maps agree with each other on the extent of every iteration dimension."""
    maps = [ir.AffineMapAttr(attribute).value for attribute in op.indexing_maps]
    if len(maps) != len(operands):
        return error(op, f"needs one indexing map per operand: {len(maps)} maps, {len(operands)} operands")
    dimensions = maps[0].n_dims if dimensions is None else dimensions
    extents: dict[int, int] = {}
    for number, (operand, indexing_map) in enumerate(zip(operands, maps)):
        shape = ir.MemRefType(operand.type).shape
        if indexing_map.n_dims != dimensions or len(indexing_map.results) != len(shape):
            return error(
                op,
                f"indexing map {number} is {indexing_map}, but there are {dimensions} dimensions "
                f"and the operand has rank {len(shape)}",
            )
        for extent, result in zip(shape, indexing_map.results):
            if not isinstance(result, ir.AffineDimExpr) or extent == DYNAMIC:
                continue
            dimension = ir.AffineDimExpr(result).position
            if extents.setdefault(dimension, extent) != extent:
                return error(
                    op,
                    f"operand {number} has extent {extent} along d{dimension}, "
                    f"another operand has {extents[dimension]}",
                )
    return True


def _check_operands(op: ir.OpView, operands: Sequence[ir.Value], *spaces: str) -> bool:
    return all(
        check_memref(op, operand, "operand") and check_space(op, operand, "operand", *spaces)
        for operand in operands
    )


def _check_body(op: ir.OpView, operands: Sequence[ir.Value]) -> bool:
    if len(op.body.blocks) != 1:
        return error(op, f"needs a region of one block, got {len(op.body.blocks)}")
    block = op.body.blocks[0]
    elements = [ir.MemRefType(operand.type).element_type for operand in operands]
    arguments = [argument.type for argument in block.arguments]
    if arguments != elements:
        return error(
            op,
            f"block arguments must be the element types ({', '.join(map(str, elements))}), "
            f"got ({', '.join(map(str, arguments))})",
        )
    last = block.operations[len(block.operations) - 1] if len(block.operations) else None
    if last is None or last.operation.name != "npu.yield":
        return error(op, "region must end with npu.yield")
    yielded = [value.type for value in last.operation.operands]
    if yielded != elements[-1:]:
        return error(
            op, f"must yield one {elements[-1]}, yields ({', '.join(map(str, yielded))})"
        )
    return True
