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
    """End the region of a vector-unit op with the new element of its output."""

    values: Sequence[ext.Operand[Any]]

    def verify_op(self) -> bool:
        parent = self.operation.parent.name
        if parent in VECTOR_OPS:
            return True
        return error(self, f"must be inside {', '.join(VECTOR_OPS)}, is inside '{parent}'")


class EltwiseOp(SlottedOp, name="eltwise", traits=[OverwriteEffects]):
    """Compute every element of a tile from the elements of others.

        output[map_out(i)] = body(inputs[0][map_0(i)], inputs[1][map_1(i)], ...)    for every i

    i runs over the iteration space: a dimension has the extent of the operands that it indexes
    directly. `indexing_maps` has a map per operand, the output's last and a permutation, so that
    each element is written once. An input's map may leave dimensions out (broadcast), permute
    and scale them. The body has a block argument per operand, of its element type; the last one,
    the old output, has no use. It holds arith and math ops on scalars, may use scalars from
    outside, and ends in npu.yield. An input may be the output itself if their maps are equal.
    Element types: any, also different ones; the body converts. Unit: vector. Every move into an
    input, and every move out of the output, has been waited for before the op.
    """

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
            and _check_in_place(self)
        )

    def verify_region_invariants(self) -> bool:
        return _check_body(self) and _check_output_is_not_read(self)


class ReduceOp(SlottedOp, name="reduce", traits=[AccumulateEffects]):
    """Fold elements of tiles into the elements of another.

        output[map_out(i)] = body(inputs[0][map_0(i)], ..., output[map_out(i)])    for every i

    `iterator_types` names each dimension of i: "parallel" ones index the output, "reduction" ones
    do not, and are visited in any order. The output holds the initial value before (npu.fill).
    Maps and body are those of npu.eltwise, but that the last block argument is the value so far.
    A window, out * stride + tap, is a map with a sum. Unit: vector, which reaches acc for an
    output there. Every move into an input or the output has been waited for before the op.
    """

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
            and self._check_iterators()
            and _check_in_place(self)
        )

    def _check_iterators(self) -> bool:
        """Parallel dimensions, and they alone, tell the elements of the output apart."""
        output_map = self.indexing_maps[len(self.indexing_maps) - 1].value
        kinds = [kind.value for kind in self.iterator_types]
        parallel = [i for i, kind in enumerate(kinds) if kind == "parallel"]
        indices = [e for e in output_map.results if not isinstance(e, ir.AffineConstantExpr)]
        direct = [e.position for e in indices if isinstance(e, ir.AffineDimExpr)]
        if sorted(direct) == parallel and len(direct) == len(indices):
            return True
        listed = ", ".join(f"d{i}" for i in parallel) or "no dimension"
        return error(
            self,
            f"the indexing map of the output must use {listed}, the parallel ones of {kinds}, "
            f"once each, got {output_map}",
        )

    def verify_region_invariants(self) -> bool:
        return _check_body(self)


class DrainOp(SlottedOp, name="drain", traits=[OverwriteEffects]):
    """Bring accumulators to the scratchpad, through an epilogue: bias, residual, activation, cast.

        output[map_out(i)] = body(accumulator[map_acc(i)], inputs[0][map_0(i)], ...)    for every i

    The only way out of acc. Maps and body are those of npu.eltwise, the accumulator in front of the
    inputs. Unit: vector; it starts when the matrix unit has written the accumulator. Every move
    into an input, and every move out of the output, has been waited for before the op.
    """

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
            and _check_in_place(self)
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


def _check_in_place(op: ir.OpView) -> bool:
    """An input that is the output is read where it is written."""
    *inputs, output = list(op.operands)
    *maps, output_map = [item.value for item in op.indexing_maps]
    for number, (value, indexing_map) in enumerate(zip(inputs, maps)):
        if value == output and indexing_map != output_map:
            return error(
                op,
                f"operand {number} is the output, so its indexing map must be {output_map}, "
                f"got {indexing_map}",
            )
    return True


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
