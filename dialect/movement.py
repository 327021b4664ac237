"""Ops that move data between memories, set it, or wait: dma_*, fill, barrier."""

# No postponed annotations here: ext reads the classes themselves.
from collections.abc import Sequence
from typing import Any

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM, DenseArrayAttr, TokenType
from mlir_npu.dialect.base import TileOp, error
from mlir_npu.dialect.bindings import ext, ir
from mlir_npu.dialect.boxes import overlap
from mlir_npu.dialect.checks import (
    DYNAMIC,
    check_extent,
    check_memref,
    check_same_element_type,
    check_scalar_type,
    check_space,
)
from mlir_npu.dialect.effects import FillEffects, MoveEffects


class DmaStartOp(TileOp, name="dma_start", traits=[MoveEffects]):
    """Start to move a strided box of `source` into `target`, and make padding on the way.

        target[low + i] = source[j]    with i[d] = j[permutation[d]], for every index j of source
        target[k] = pad_value          everywhere else; only with `low`

    Source and target are views: offset and strides of their types say where the elements are.
    Target dimension d is source dimension permutation[d]. Without `low` (then it counts as 0)
    the extents agree and every target element is moved. With `low`, one index per target
    dimension, the source lands inside the target, 0 <= low[d] and low[d] + extent <= target
    extent, and padding is made on the way: into sram it costs no bytes in dram. Source extents may
    be dynamic and 0; that is how a tile at the border of an image has fewer valid rows.
    Element types agree: a move never converts. Source and target do not overlap.
    Unit: an in-channel of the DMA for dram to sram, an out-channel for sram to dram, one of each
    for dram to dram, an in-channel for sram to sram. acc is out of its reach. The op returns at
    once. Until npu.dma_wait has had the token, nothing reads the target and nothing writes source
    or target; moves whose bytes conflict are kept in program order by the machine.
    """

    source: ext.Operand[Any]
    target: ext.Operand[Any]
    low: Sequence[ext.Operand[ir.IndexType]]
    permutation: DenseArrayAttr
    token: ext.Result[TokenType]

    OPTIONAL = ("pad_value",)

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
        attributes = {"permutation": ir.DenseI64ArrayAttr.get(list(permutation))}
        if pad_value is not None:
            attributes["pad_value"] = pad_value
        # the constructor of ext takes the empty array of a rank-0 move for a missing attribute
        return ir.Operation.create(
            cls.OPERATION_NAME,
            results=[TokenType.get()],
            operands=[source, target, *low],
            attributes=attributes,
            loc=loc,
        ).opview

    def verify_op(self) -> bool:
        if not check_memref(self, self.source, "source"):
            return False
        rank = ir.MemRefType(self.source.type).rank
        return (
            check_memref(self, self.target, "target", rank)
            and check_same_element_type(self, [self.source, self.target], ["source", "target"])
            and check_space(self, self.source, "source", DRAM, SRAM)
            and check_space(self, self.target, "target", DRAM, SRAM)
            and self._check_apart()
            and self._check_permutation(rank)
            and self._check_padding(rank)
            and self._check_extents()
        )

    def _check_apart(self) -> bool:
        if self.source == self.target:
            return error(self, f"source and target are the same buffer: {self.source.type}")
        if not overlap(self.source, self.target):
            return True
        return error(
            self, f"source and target overlap in one buffer: {self.source.type}, {self.target.type}"
        )

    def _check_permutation(self, rank: int) -> bool:
        order = list(self.permutation)
        if sorted(order) == list(range(rank)):
            return True
        return error(self, f"'permutation' must hold each of 0..{rank - 1} once, got {order}")

    def _check_padding(self, rank: int) -> bool:
        if len(self.low) not in (0, rank):
            return error(self, f"takes no or {rank} 'low' operands, got {len(self.low)}")
        if bool(self.low) != (self.pad_value is not None):
            return error(self, "takes 'pad_value' together with 'low' operands, or neither")
        if self.pad_value is None:
            return True
        return check_scalar_type(self, "pad_value", self.pad_value, self.target)

    def _check_extents(self) -> bool:
        source, target = ir.MemRefType(self.source.type), ir.MemRefType(self.target.type)
        for dim, source_dim in enumerate(self.permutation):
            have, room = source.shape[source_dim], target.shape[dim]
            what = f"source dimension {source_dim} and target dimension {dim} differ"
            if self.low and not self._check_landing(dim, have, room):
                return False
            if not self.low and not check_extent(self, what, have, room):
                return False
        return True

    def _check_landing(self, dim: int, have: int, room: int) -> bool:
        low = _constant(self.low[dim])
        if low is not None and low < 0:
            return error(self, f"'low' must not be negative, got {low} in dimension {dim}")
        if DYNAMIC in (have, room) or (low or 0) + have <= room:
            return True
        return error(
            self,
            f"source of extent {have} at {low or 0} exceeds target extent {room} "
            f"in dimension {dim}",
        )


class DmaWaitOp(TileOp, name="dma_wait"):
    """Wait until the moves of all `tokens` are done.

    Control stops here: no later op is issued before. After it the targets may be read and the
    sources written. Every token is waited for once on each path through the function; it may cross
    loops and branches as an iteration argument or a result before that.
    """

    tokens: Sequence[ext.Operand[TokenType]]

    def verify_op(self) -> bool:
        return True if self.tokens else error(self, "takes at least one token")


class DmaNoneOp(TileOp, name="dma_none"):
    """The token of no move: waiting for it returns at once."""

    token: ext.Result[TokenType]

    def verify_op(self) -> bool:
        return True


class DmaJoinOp(TileOp, name="dma_join"):
    """One token for the moves of all `tokens`: waiting for it waits for each of them.

    Takes no time and holds nothing. A loop of moves joins the token of each to those of the moves
    before, and is waited for like one move.
    """

    tokens: Sequence[ext.Operand[TokenType]]
    token: ext.Result[TokenType]

    def verify_op(self) -> bool:
        return True if self.tokens else error(self, "takes at least one token")


class FillOp(TileOp, name="fill", traits=[FillEffects]):
    """Set every element of an on-chip tile to `value`.

        target[i] = value    for every index i

    Element type: any; `value` has it too. Unit: matrix for a target in acc, vector for one in sram.
    A move out of the target has been waited for before the op.
    """

    target: ext.Operand[Any]
    value: Any

    def verify_op(self) -> bool:
        return (
            check_memref(self, self.target, "target")
            and check_space(self, self.target, "target", SRAM, ACC)
            and check_scalar_type(self, "value", self.value, self.target)
        )


class BarrierOp(TileOp, name="barrier"):
    """Wait until every unit has finished all that was started before.

    Moves included; their tokens still have to be waited for.
    """


def _constant(value: ir.Value) -> int | None:
    """The value of an index constant, None for any other value."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value
