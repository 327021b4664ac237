"""Tokens of moves: who makes or receives them."""

from __future__ import annotations

from collections.abc import Iterator

from mlir_npu.dialect.attributes import TokenType
from mlir_npu.dialect.bindings import ir


def tokens_of(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Block]]:
    """Tokens that `op` makes or that its regions receive, each with its block."""
    values = [(result, op.block) for result in op.results]
    blocks = [block for region in op.regions for block in region.blocks]
    values += [(argument, block) for block in blocks for argument in block.arguments]
    yield from ((v, block) for v, block in values if isinstance(v.type, TokenType))
