"""Find fill, compute and drain of one accumulator tile, so that it can live in registers.

The three become one micro-kernel at the place of the drain when they are the only users of the
accumulator between them and when nothing in between, the drain's own output included, may overwrite
what the compute reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.microkernels.aliasing import may_overlap, users_of, whole_buffer

COMPUTE = frozenset(
    {
        "npu.batch_matmul",
        "npu.conv2d",
        "npu.depthwise_conv2d",
        "npu.matmul",
        "npu.pool2d",
        "npu.reduce",
        "npu.winograd_output",
    }
)
# Ops that only name memory, and constants: no effect on what a later op reads.
_HARMLESS = ("memref.", "arith.", "affine.", "npu.dma_wait")
_READERS = frozenset({"npu.drain", "npu.eltwise"})


@dataclass(frozen=True)
class AccumulatorGroup:
    """A compute op with the fill before it and the drain after it, where they can be fused.

    `padding`: the move that made its image, where the compute reads the source of that instead.
    """

    compute: ir.Operation
    fill: ir.Operation | None
    drain: ir.Operation | None
    padding: ir.Operation | None = None

    @property
    def last(self) -> ir.Operation:
        return self.drain or self.compute


def find_group(compute: ir.Operation) -> AccumulatorGroup:
    """The largest group around `compute` that is safe to fuse."""
    accumulator = whole_buffer(compute.operands[-1])
    users = users_of(accumulator)
    alone = AccumulatorGroup(compute, None, None)
    if any(u.block != compute.block for u in users):
        return alone
    order = [op.operation for op in compute.block.operations]
    sequence = [op for op in order if op in users]
    at = sequence.index(compute)
    fill = sequence[at - 1] if at and sequence[at - 1].name == "npu.fill" else None
    drain = sequence[at + 1] if at + 1 < len(sequence) else None
    if not _is_overwritten(sequence, at + 2):
        drain = None
    if drain is not None and not _can_fuse_drain(compute, drain, order):
        drain = None
    # Without a fill the tile carries a value in, so the drain alone cannot replace the memory.
    if fill is None or drain is None:
        return AccumulatorGroup(compute, fill, None)
    return AccumulatorGroup(compute, fill, drain)


def _is_overwritten(sequence: list[ir.Operation], at: int) -> bool:
    """Whether nobody reads the tile after its drain: next comes a fill, also around a loop."""
    following = sequence[at] if at < len(sequence) else sequence[0]
    return following.name == "npu.fill"


def _can_fuse_drain(compute: ir.Operation, drain: ir.Operation, order: list[ir.Operation]) -> bool:
    if drain.name not in _READERS:
        return False
    accumulator = whole_buffer(compute.operands[-1])
    reads = [i for i, v in enumerate(drain.operands) if whole_buffer(v) == accumulator]
    if reads != [0] or not _covers_accumulator(compute, drain):
        return False
    inputs = list(compute.operands)[:-1]
    if any(may_overlap(drain.operands[-1], value) for value in inputs):
        return False
    between = order[order.index(compute) + 1 : order.index(drain)]
    return all(keeps(op, inputs) for op in between)


def _covers_accumulator(compute: ir.Operation, drain: ir.Operation) -> bool:
    """Whether the drain visits each element once, in a shape that is equal but for extents of 1."""
    map_ = ir.AffineMapAttr(drain.attributes["indexing_maps"][0]).value
    shapes = [ir.MemRefType(v.type).shape for v in (compute.operands[-1], drain.operands[0])]
    computed, drained = ([extent for extent in shape if extent > 1] for shape in shapes)
    return map_.is_permutation and computed == drained


def keeps(op: ir.Operation, inputs: Iterable[ir.Value]) -> bool:
    """Whether `op` leaves the memory of `inputs` as it is."""
    if op.name in ("memref.store", "memref.copy") or (len(op.regions) and op.name not in _READERS):
        return False
    if op.name == "npu.dma_start":
        return not any(may_overlap(op.operands[1], value) for value in inputs)
    if op.name.startswith("npu.") and op.name != "npu.dma_wait":
        return not any(may_overlap(op.operands[-1], value) for value in inputs)
    return op.name.startswith(_HARMLESS)
