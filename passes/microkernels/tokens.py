"""Tokens of moves where every move is complete at once."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.tokens import tokens_of
from mlir_npu.passes.kernels.walk import nested, users
from mlir_npu.passes.microkernels.emit import index_constant
from mlir_npu.passes.registry import fail

CARRIERS = ("scf.for", "scf.yield", "npu.dma_join")


def retire_tokens(module: ir.Operation) -> None:
    """Make every token that loops and branches carry an index 0; waits are gone before."""
    for op in nested(module):
        for token, _ in list(tokens_of(op)):
            _require_carriers(op, token)
            if not op.name.startswith("npu."):
                token.set_type(ir.IndexType.get())
            elif list(token.uses):
                with ir.InsertionPoint(op), op.location:
                    token.replace_all_uses_with(index_constant(0))
    for op in nested(module, "npu.dma_none", "npu.dma_join"):
        op.erase()


def _require_carriers(op: ir.Operation, token: ir.Value) -> None:
    for user in users(token):
        if user.name not in CARRIERS:
            fail(op, f"the token of '{op.name}' is used by '{user.name}'")
