"""Ops without regions that make a value: constants, buffers, views, index arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.buffers import Buffer, check_type
from mlir_npu.simulator.errors import UnknownType
from mlir_npu.simulator.indices import index_function
from mlir_npu.simulator.machine import Machine
from mlir_npu.simulator.views import (
    beginning_function,
    cast_function,
    reshape_function,
    subview_function,
    transpose_function,
    view_function,
)

SAME_BUFFER = ("memref.memory_space_cast", "memref.cast")
RESHAPES = ("memref.collapse_shape", "memref.expand_shape")


def value_function(op: ir.Operation, machine: Machine) -> Callable | None:
    """The result of an op as a function of its operands; None for ops that are not known.

    Raises UnknownType.
    """
    if op.name == "arith.constant":
        return _constant(op)
    if op.name in ("memref.alloc", "memref.get_global"):
        check_type(op.results[0].type)
        return lambda: machine.allocate(op)
    if op.name == "npu.dma_none":
        return machine.no_move
    if op.name == "npu.dma_join":
        return lambda *tokens: tuple(moves_of(tokens))
    if op.name in SAME_BUFFER:
        return cast_function(op)
    if op.name == "memref.view":
        return _view(op, machine)
    if op.name == "memref.reinterpret_cast":
        return beginning_function(op)
    if op.name == "memref.subview":
        return subview_function(op)
    if op.name == "memref.transpose":
        return transpose_function(op)
    if op.name in RESHAPES:
        return reshape_function(op)
    return index_function(op)


def moves_of(tokens: Sequence[Any]) -> Iterator[Any]:
    """The tokens of single moves: a joined one is a tuple of them."""
    for token in tokens:
        yield from token if isinstance(token, tuple) else (token,)


def _constant(op: ir.Operation) -> Callable:
    value = getattr(op.attributes["value"], "value", None)
    if value is None:
        raise UnknownType(f"a constant of type {op.results[0].type} is no number")
    return lambda: value


def _view(op: ir.Operation, machine: Machine) -> Callable:
    view = view_function(op)

    def placed(source: Buffer, shift: int) -> Buffer:
        buffer = view(source, shift)
        machine.check_place(op, buffer)
        return buffer

    return placed
