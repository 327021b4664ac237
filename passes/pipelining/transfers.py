"""Which moves are serial loads and stores of tiles, and which buffers start anew each iteration."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.liveness import overwrites
from mlir_npu.passes.kernels.walk import definition, users
from mlir_npu.passes.microkernels.aliasing import users_of, whole_buffer


@dataclass(frozen=True)
class Load:
    """A move from dram that alone fills `buffer`, an allocation, and the wait for it at once."""

    move: ir.Operation
    wait: ir.Operation
    buffer: ir.Operation


@dataclass(frozen=True)
class Store:
    """A move to dram that alone reads `buffer`, which the iteration overwrites before."""

    move: ir.Operation
    wait: ir.Operation
    buffer: ir.Operation


def read_load(move: ir.Operation) -> Load | str:
    """The load that `move` is, or why it is none."""
    source, target = move.operands[0], move.operands[1]
    if (space_of(source.type), space_of(target.type)) != (DRAM, SRAM):
        return "is no load"
    wait, buffer = _wait_of(move), _own_buffer(target, move)
    for found in (wait, buffer):
        if isinstance(found, str):
            return found
    others = [op for op in users_of(target) if op != move]
    if any(_writes(op, target) for op in others):
        return "its buffer is also written by another op"
    if any(_position(op, move.block) <= _position(wait, move.block) for op in others):
        return "its buffer is used before it is loaded"
    return Load(move, wait, buffer)


def read_store(move: ir.Operation) -> Store | str:
    """The store that `move` is, or why it is none."""
    source, target = move.operands[0], move.operands[1]
    if (space_of(source.type), space_of(target.type)) != (SRAM, DRAM):
        return "is no store"
    wait, buffer = _wait_of(move), _own_buffer(source, move)
    for found in (wait, buffer):
        if isinstance(found, str):
            return found
    if (reason := _starts_anew(buffer)) is not None:
        return reason
    if max(_position(op, move.block) for op in users_of(source)) > _position(move, move.block):
        return "its buffer is used after it is stored"
    return Store(move, wait, buffer)


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
