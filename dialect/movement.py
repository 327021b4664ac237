"""Ops that move data between memories or set it: dma_start, dma_wait, fill, barrier."""

# No postponed annotations here: ext reads the classes themselves.
from collections.abc import Sequence
from typing import Any

from mlir_npu.dialect.attributes import ACC, SRAM, DenseArrayAttr, TokenType
from mlir_npu.dialect.base import Npu
from mlir_npu.dialect.bindings import ext, ir
from mlir_npu.dialect.checks import (
    DYNAMIC,
    check_extent,
    check_memref,
    check_same_element_type,
    check_segments,
    check_space,
    error,
)
from mlir_npu.dialect.effects import FillEffects, MoveEffects

PAD_VALUE = "pad_value"


class DmaStartOp(Npu.Operation, name="dma_start", traits=[MoveEffects]):
    """Start to move `source` into `target`; target dimension i walks source dimension permutation[i].

    Without `low` the extents agree. With `low`, one index per target dimension, the source lands at
    target[low...] and every other target element becomes `pad_value`.
    """

    source: ext.Operand[Any]
    target: ext.Operand[Any]
    low: Sequence[ext.Operand[ir.IndexType]]
    permutation: DenseArrayAttr
    token: ext.Result[TokenType]

    @classmethod
    def build(
        cls,
        source: ir.Value,
        target: ir.Value,
        *,
        low: Sequence[ir.Value] = (),
        permutation: Sequence[int] | None = None,
        pad_value: ir.Attribute | None = None,
        loc: ir.Location | None = None,
    ) -> "DmaStartOp":
        """Builder with plain Python values; the permutation defaults to the identity."""
        if permutation is None:
            permutation = range(ir.MemRefType(target.type).rank)
        order = ir.DenseI64ArrayAttr.get(list(permutation))
        op = cls(source, target, list(low), order, TokenType.get(), loc=loc)
        if pad_value is not None:
            op.attributes[PAD_VALUE] = pad_value
        return op

    @property
    def pad_value(self) -> ir.Attribute | None:
        """The value outside of the landing box, or None for a plain move."""
        return self.attributes[PAD_VALUE] if PAD_VALUE in self.attributes else None

    def verify_invariants(self) -> bool:
        if not check_segments(self, 3) or not check_memref(self, self.source, "source"):
            return False
        source = ir.MemRefType(self.source.type)
        return (
            check_memref(self, self.target, "target", source.rank)
            and check_same_element_type(self, [self.source, self.target], ["source", "target"])
            and check_space(self, self.source, "source", "dram", "sram")
            and check_space(self, self.target, "target", "dram", "sram")
            and self._check_permutation(source.rank)
            and self._check_padding(source.rank)
            and self._check_extents()
        )

    def _check_permutation(self, rank: int) -> bool:
        order = list(self.permutation)
        if sorted(order) == list(range(rank)):
            return True
        return error(self, f"'permutation' must be a permutation of 0..{rank - 1}, got {order}")

    def _check_padding(self, rank: int) -> bool:
        if len(self.low) not in (0, rank):
            return error(self, f"needs 0 or {rank} 'low' operands, got {len(self.low)}")
        if bool(len(self.low)) != (self.pad_value is not None):
            return error(self, "needs 'pad_value' exactly when it has 'low' operands")
        if self.pad_value is None:
            return True
        element = ir.MemRefType(self.target.type).element_type
        if getattr(self.pad_value, "type", None) != element:
            return error(self, f"'pad_value' must be of type {element}, got {self.pad_value}")
        return True

    def _check_extents(self) -> bool:
        source, target = ir.MemRefType(self.source.type), ir.MemRefType(self.target.type)
        for dim, source_dim in enumerate(self.permutation):
            have, room = source.shape[source_dim], target.shape[dim]
            if not len(self.low):
                if not check_extent(self, f"source and target differ in target dimension {dim}", have, room):
                    return False
                continue
            low = _constant(self.low[dim])
            if DYNAMIC in (have, room) or low is None:
                continue
            if low < 0 or low + have > room:
                return error(
                    self,
                    f"source of extent {have} at {low} exceeds target extent {room} in dimension {dim}",
                )
        return True


class DmaWaitOp(Npu.Operation, name="dma_wait"):
    """Wait until the moves of the tokens are done."""

    tokens: Sequence[ext.Operand[TokenType]]

    def verify_invariants(self) -> bool:
        if not len(self.operands):
            return error(self, "needs at least one token")
        return True


class FillOp(Npu.Operation, name="fill", traits=[FillEffects]):
    """Set every element of an on-chip tile to `value`."""

    target: ext.Operand[Any]
    value: Any

    def verify_invariants(self) -> bool:
        if not check_memref(self, self.target, "target"):
            return False
        if not check_space(self, self.target, "target", SRAM, ACC):
            return False
        element = ir.MemRefType(self.target.type).element_type
        if getattr(self.value, "type", None) != element:
            return error(self, f"'value' must be of type {element}, got {self.value}")
        return True


class BarrierOp(Npu.Operation, name="barrier"):
    """Every unit finishes what it has started."""


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value
