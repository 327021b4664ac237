"""Ops of the vector unit: eltwise, reduce, drain, each with a region of scalar arith and math ops.

Indexing maps and regions read as in linalg.generic: one map and one block argument per operand, in
operand order, and `npu.yield` gives the new element of the output.
"""

# No postponed annotations here: ext reads the classes themselves.
from collections.abc import Sequence
from typing import Any

from mlir_npu.dialect.attributes import ACC, SRAM
from mlir_npu.dialect.base import TileOp, error
from mlir_npu.dialect.bindings import ext, ir
from mlir_npu.dialect.checks import check_memref, check_space
from mlir_npu.dialect.effects import AccumulateEffects, OverwriteEffects
from mlir_npu.dialect.indexing import check_indexing
from mlir_npu.dialect.slots import SlottedOp

ITERATOR_KINDS = ("parallel", "reduction")
VECTOR_OPS = ("npu.eltwise", "npu.reduce", "npu.drain")
SCALAR_DIALECTS = ("arith", "math")


class YieldOp(TileOp, name="yield", traits=[ir.IsTerminatorTrait]):
    """Ends the region of a vector-unit op with the new output element."""

    values: Sequence[ext.Operand[Any]]

    def verify_op(self) -> bool:
        parent = self.operation.parent.name
        if parent in VECTOR_OPS:
            return True
        return error(self, f"must be inside {', '.join(VECTOR_OPS)}, is inside '{parent}'")


class EltwiseOp(SlottedOp, name="eltwise", traits=[OverwriteEffects]):
    """output[map(i)] = region(inputs[map(i)]...) for every i; all dimensions are parallel."""

    inputs: Sequence[ext.Operand[Any]]
    output: ext.Operand[Any]
    indexing_maps: ir.ArrayAttr
    body: ir.Region

    def verify_op(self) -> bool:
        operands = list(self.operands)
        return (
            all(
                _check_operand(self, value, f"operand {i}", SRAM)
                for i, value in enumerate(operands)
            )
            and check_indexing(self, operands)
            and _check_output_is_covered(self)
        )

    def verify_region_invariants(self) -> bool:
        return _check_body(self) and _check_output_is_not_read(self)


class ReduceOp(SlottedOp, name="reduce", traits=[AccumulateEffects]):
    """output[map(i)] = region(inputs[map(i)]..., output[map(i)]) for every i."""

    inputs: Sequence[ext.Operand[Any]]
    output: ext.Operand[Any]
    indexing_maps: ir.ArrayAttr
    iterator_types: ir.ArrayAttr
    body: ir.Region

    def verify_op(self) -> bool:
        for kind in self.iterator_types:
            if not isinstance(kind, ir.StringAttr) or kind.value not in ITERATOR_KINDS:
                listed = " or ".join(f'"{name}"' for name in ITERATOR_KINDS)
                return error(self, f"'iterator_types' must hold {listed}, got {kind}")
        operands = list(self.operands)
        return (
            all(
                _check_operand(self, value, f"operand {i}", SRAM)
                for i, value in enumerate(self.inputs)
            )
            and _check_operand(self, self.output, "output", SRAM, ACC)
            and check_indexing(self, operands, len(self.iterator_types))
        )

    def verify_region_invariants(self) -> bool:
        return _check_body(self)


class DrainOp(SlottedOp, name="drain", traits=[OverwriteEffects]):
    """output[map(i)] = region(accumulator[map(i)], inputs[map(i)]...): the way out of acc."""

    accumulator: ext.Operand[Any]
    inputs: Sequence[ext.Operand[Any]]
    output: ext.Operand[Any]
    indexing_maps: ir.ArrayAttr
    body: ir.Region

    def verify_op(self) -> bool:
        operands = list(self.operands)
        return (
            _check_operand(self, self.accumulator, "accumulator", ACC)
            and all(
                _check_operand(self, value, f"operand {i}", SRAM)
                for i, value in enumerate(operands)
                if i > 0
            )
            and check_indexing(self, operands)
            and _check_output_is_covered(self)
        )

    def verify_region_invariants(self) -> bool:
        return _check_body(self) and _check_output_is_not_read(self)


def _check_operand(op: ir.OpView, value: ir.Value, name: str, *spaces: str) -> bool:
    return check_memref(op, value, name) and check_space(op, value, name, *spaces)


def _check_output_is_covered(op: ir.OpView) -> bool:
    """Each point of the iteration space writes an output element of its own."""
    output_map = op.indexing_maps[len(op.indexing_maps) - 1].value
    if output_map.is_permutation:
        return True
    return error(op, f"the indexing map of the output must be a permutation, got {output_map}")


def _check_body(op: ir.OpView) -> bool:
    if len(op.body.blocks) != 1:
        return error(op, f"needs a region of one block, got {len(op.body.blocks)}")
    block = op.body.blocks[0]
    elements = [ir.MemRefType(operand.type).element_type for operand in op.operands]
    arguments = [argument.type for argument in block.arguments]
    if arguments != elements:
        return error(
            op,
            f"block arguments must be the element types ({_listed(elements)}), "
            f"got ({_listed(arguments)})",
        )
    *scalar_ops, last = [child.operation for child in block.operations]
    for child in scalar_ops:
        if child.name.partition(".")[0] not in SCALAR_DIALECTS:
            return error(op, f"region may hold arith and math ops only, got '{child.name}'")
    if last.name != YieldOp.OPERATION_NAME:
        return error(op, f"region must end with npu.yield, got '{last.name}'")
    yielded = [value.type for value in last.operands]
    if yielded != elements[-1:]:
        return error(op, f"must yield one {elements[-1]}, yields ({_listed(yielded)})")
    return True


def _check_output_is_not_read(op: ir.OpView) -> bool:
    arguments = op.body.blocks[0].arguments
    if not list(arguments[len(arguments) - 1].uses):
        return True
    return error(op, "must not read the output that it overwrites")


def _listed(types: Sequence[ir.Type]) -> str:
    return ", ".join(map(str, types))
