"""Leave out moves that only copy, on targets whose sram is a cache of dram.

A tile that is a plain copy of a dram box is read there; a tile whose last use is a plain copy
into a dram box is made there. Moves that pad or re-lay-out stay: they are what makes compute
fast. A tile is left alone if anything else writes it, or if its box may be overwritten while it
is in use.

Before:
    %t = npu.dma_start(%box, %tile); npu.dma_wait(%t)      // %box: dram, %tile: sram
    npu.conv2d(%tile, %w, %acc)
After:
    %here = memref.memory_space_cast %box : memref<...> to memref<..., #npu.space<"sram">>
    npu.conv2d(%here, %w, %acc)
"""

from __future__ import annotations

from mlir_npu.dialect.attributes import DRAM, SRAM, space_of, with_space
from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.dialect.movement import DmaWaitOp
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.kernels.liveness import OVERWRITING
from mlir_npu.passes.kernels.walk import functions, nested, users
from mlir_npu.passes.microkernels.aliasing import memory_of, users_of, whole_buffer
from mlir_npu.passes.microkernels.retype import can_retype, replace_tile
from mlir_npu.passes.registry import NoOptions, register_pass

# Ops that an address is computed with; they may move to where it is needed.
_ADDRESS = ("affine.", "arith.", "memref.subview", "memref.memory_space_cast")


@register_pass("elide-dma")
def elide_dma(module: ir.Operation, options: NoOptions) -> None:
    for function in functions(module):
        moves = [op for op in nested(function, "npu.dma_start") if _only_copies(op)]
        if not moves or not target_of(module).cached:
            continue
        for move in moves:
            source, target = (space_of(move.operands[i].type) for i in (0, 1))
            if (source, target) == (DRAM, SRAM):
                _read_in_place(move, function)
            elif (source, target) == (SRAM, DRAM):
                _write_in_place(move, function)


def _only_copies(move: ir.Operation) -> bool:
    """No re-layout, and no border: nothing to pad when the source fills the target."""
    order = list(ir.DenseI64ArrayAttr(move.attributes["permutation"]))
    shapes = [list(ir.MemRefType(move.operands[i].type).shape) for i in (0, 1)]
    dynamic = ir.ShapedType.get_dynamic_size()
    return order == sorted(order) and shapes[0] == shapes[1] and dynamic not in shapes[0]


def _read_in_place(move: ir.Operation, function: ir.Operation) -> None:
    source, tile = move.operands[0], whole_buffer(move.operands[1])
    readers = [op for op in users_of(tile) if op != move]
    if tile != move.operands[1] or any(_written(op) is None for op in readers):
        return
    if any(whole_buffer(_written(op)) == tile for op in readers):
        return
    if not all(_runs_after(op, move) for op in readers) or _is_written(source, function):
        return
    type_ = with_space(ir.MemRefType(source.type), SRAM)
    if not can_retype(tile, type_):
        return
    with ir.InsertionPoint(move), move.location:
        here = memref.MemorySpaceCastOp(type_, source).result
    _erase_move(move)
    replace_tile(tile, here)


def _write_in_place(move: ir.Operation, function: ir.Operation) -> None:
    tile, target = whole_buffer(move.operands[0]), move.operands[1]
    order = _in_order(move, users_of(tile))
    if tile != move.operands[0] or order is None or order[-1] != move or len(order) < 2:
        return
    first = order[0]
    if any(_written(op) is None for op in order) or not _overwrites(first, tile):
        return
    type_ = with_space(ir.MemRefType(target.type), SRAM)
    if _touches_between(first, move, target) or not can_retype(tile, type_):
        return
    if not _make_available(target, first):
        return
    with ir.InsertionPoint(first), move.location:
        here = memref.MemorySpaceCastOp(type_, target).result
    _erase_move(move)
    replace_tile(tile, here)


def _written(op: ir.Operation) -> ir.Value | None:
    """The operand that an npu op writes; None for other ops, of which nothing is known."""
    if not op.name.startswith("npu."):
        return None
    return op.operands[1] if op.name == "npu.dma_start" else op.operands[len(op.operands) - 1]


def _overwrites(op: ir.Operation, tile: ir.Value) -> bool:
    """Whether `op` sets all of `tile` without reading it."""
    if op.name not in (*OVERWRITING, "npu.dma_start"):
        return False
    reads = list(op.operands)[:1] if op.name == "npu.dma_start" else list(op.operands)[:-1]
    return whole_buffer(_written(op)) == tile and all(whole_buffer(v) != tile for v in reads)


def _runs_after(op: ir.Operation, move: ir.Operation) -> bool:
    """Whether `op` stands behind `move`, in its block or in a region there."""
    while op is not None and op.block != move.block:
        op = op.parent.operation if op.parent is not None else None
    if op is None:
        return False
    order = [child.operation for child in move.block.operations]
    return order.index(op) > order.index(move)


def _in_order(move: ir.Operation, ops: list[ir.Operation]) -> list[ir.Operation] | None:
    """`ops` as they stand in the block of `move`; None if some are elsewhere."""
    if any(op.block != move.block for op in ops):
        return None
    return [op.operation for op in move.block.operations if op.operation in ops]


def _is_written(source: ir.Value, function: ir.Operation) -> bool:
    """Whether the function writes the memory that `source` is a box of."""
    root = memory_of(source).root
    written = (_written(op) for op in nested(function) if op.name.startswith("npu."))
    return any(
        isinstance(v.type, ir.MemRefType) and memory_of(v).root == root
        for v in written
        if v is not None
    )


def _touches_between(first: ir.Operation, move: ir.Operation, target: ir.Value) -> bool:
    """Whether an op from `first` to `move` already uses the memory of `target`."""
    root = memory_of(target).root
    order = [child.operation for child in move.block.operations]
    between = order[order.index(first) : order.index(move)]
    inner = [op for outer in between for op in (outer, *nested(outer))]
    return any(
        isinstance(v.type, ir.MemRefType) and memory_of(v).root == root
        for op in inner
        if op.name.startswith("npu.")
        for v in op.operands
    )


def _make_available(target: ir.Value, first: ir.Operation) -> bool:
    """Move the ops that compute the address of `target` in front of `first`, if they allow it."""
    order = [child.operation for child in first.block.operations]
    late = {order[i] for i in range(order.index(first), len(order))}
    needed, pending = [], [target]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block) or owner.operation not in late:
            continue
        if not owner.operation.name.startswith(_ADDRESS):
            return False
        needed.append(owner.operation)
        pending += list(owner.operands)
    for op in [o for o in order if o in needed]:
        op.move_before(first)
    return True


def _erase_move(move: ir.Operation) -> None:
    """Erase a move and its token's waits."""
    for wait in users(move.results[0]):
        others = [t for t in wait.operands if t != move.results[0]]
        if others:
            with ir.InsertionPoint(wait), wait.location:
                DmaWaitOp(others)
        wait.erase()
    move.erase()
