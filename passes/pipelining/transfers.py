"""Which moves are serial loads and stores of tiles, and which buffers start anew each iteration."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.liveness import overwrites
from mlir_npu.passes.kernels.walk import definition, users
from mlir_npu.passes.microkernels.aliasing import users_of, whole_buffer


@dataclass(frozen=True)
class Transfer:
    """A move between dram and a tile, the wait for it at once, and the allocation of the tile."""

    move: ir.Operation
    wait: ir.Operation
    buffer: ir.Operation


def read_load(move: ir.Operation) -> Transfer | str:
    """`move` as a load from dram that alone fills its buffer, or why it is none."""
    load = _read(move, (DRAM, SRAM), tile=1)
    if isinstance(load, str):
        return load
    target = move.operands[1]
    others = [op for op in users_of(target) if op != move]
    if any(_writes(op, target) for op in others):
        return "its buffer is also written by another op"
    if any(_position(op, move.block) <= _position(load.wait, move.block) for op in others):
        return "its buffer is used before it is loaded"
    return load


def read_store(move: ir.Operation) -> Transfer | str:
    """`move` as a store to dram of a buffer that the iteration overwrites, or why it is none."""
    store = _read(move, (SRAM, DRAM), tile=0)
    if isinstance(store, str):
        return store
    if (reason := _starts_anew(store.buffer)) is not None:
        return reason
    readers = users_of(move.operands[0])
    if max(_position(op, move.block) for op in readers) > _position(move, move.block):
        return "its buffer is used after it is stored"
    return store


def _read(move: ir.Operation, ends: tuple[str, str], tile: int) -> Transfer | str:
    """`move` between the memories `ends`, of which operand `tile` is the tile."""
    if tuple(space_of(move.operands[i].type) for i in (0, 1)) != ends:
        return f"does not move from {ends[0]} to {ends[1]}"
    wait, buffer = _wait_of(move), _own_buffer(move.operands[tile], move)
    for found in (wait, buffer):
        if isinstance(found, str):
            return found
    return Transfer(move, wait, buffer)


def alternates(allocation: ir.Operation) -> str | None:
    """Why an accumulator carries something from one iteration to the next; None if it does not."""
    if space_of(allocation.results[0].type) != ACC:
        return "is no accumulator"
    return _starts_anew(allocation)


def _starts_anew(allocation: ir.Operation) -> str | None:
    buffer = allocation.results[0]
    order = sorted(users_of(buffer), key=lambda op: _position(op, allocation.block))
    if not order or order[0].block != allocation.block or not overwrites(order[0], buffer):
        return "an iteration does not start by overwriting it"
    return None


def _wait_of(move: ir.Operation) -> ir.Operation | str:
    waits = users(move.results[0])
    if len(waits) != 1 or waits[0].name != "npu.dma_wait" or waits[0].block != move.block:
        return "is not waited for in the same block"
    if len(waits[0].operands) != 1:
        return "is waited for together with other moves"
    if _position(waits[0], move.block) != _position(move, move.block) + 1:
        return "is not waited for at once"
    return waits[0]


def _own_buffer(value: ir.Value, move: ir.Operation) -> ir.Operation | str:
    allocation = definition(value)
    if allocation is None or allocation.name != "memref.alloc":
        return "its tile is no buffer of its own"
    if allocation.block != move.block:
        return "its buffer is shared with what stands outside of the loop"
    return allocation


def _writes(op: ir.Operation, value: ir.Value) -> bool:
    """Whether `op` may write `value`; a view may be written by whoever uses it."""
    if op.name == "npu.dma_start":
        return whole_buffer(op.operands[1]) == value
    if op.name.startswith("npu."):
        return whole_buffer(list(op.operands)[-1]) == value
    return True


def _position(op: ir.Operation, block: ir.Block) -> int:
    """Where in `block` the op stands that is or contains `op`."""
    while op.block != block:
        op = op.parent.operation
    return [child.operation for child in block.operations].index(op)
