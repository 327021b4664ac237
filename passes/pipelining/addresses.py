"""Computations of addresses: what they need, and building them again for another iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import definition, nested

_PURE = ("affine.", "arith.")
_VIEWS = (
    "memref.subview",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.memory_space_cast",
)


def is_inside(op: ir.Operation | None, ancestor: ir.Operation) -> bool:
    """Whether `op` is `ancestor` or nested in it."""
    while op is not None and op != ancestor:
        op = op.parent.operation if op.parent is not None else None
    return op is not None


def address_ops(values: Iterable[ir.Value], around: ir.Operation) -> list[ir.Operation] | str:
    """The ops inside of `around` that compute `values`, in order; or which op forbids to repeat."""
    found: dict[ir.Operation, None] = {}

    def visit(value: ir.Value) -> str | None:
        op = definition(value)
        if op is None or op in found or not is_inside(op, around):
            return None
        if not (op.name.startswith(_PURE) or op.name in _VIEWS):
            return f"'{op.name}' takes part in its address"
        for operand in op.operands:
            if (reason := visit(operand)) is not None:
                return reason
        found[op] = None
        return None

    for value in values:
        if (reason := visit(value)) is not None:
            return reason
    return list(found)


def rebuild(ops: Iterable[ir.Operation], known: Mapping[ir.Value, ir.Value]) -> dict:
    """Clone `ops` at the insertion point with `known` values replaced; returns all replacements."""
    values = dict(known)
    for op in ops:
        copy = op.clone()
        for position, operand in enumerate(op.operands):
            copy.operands[position] = values.get(operand, operand)
        values.update(zip(op.results, copy.results))
    return values


def root_of(view: ir.Value) -> ir.Value:
    """The buffer or argument of which `view` is a part."""
    while (made_by := definition(view)) is not None and made_by.name in _VIEWS:
        view = made_by.operands[0]
    return view


def written_roots(within: ir.Operation) -> set[ir.Value]:
    """Buffers that moves inside of `within` write in dram or sram."""
    return {root_of(move.operands[1]) for move in nested(within, "npu.dma_start")}
