"""Views of dense buffers with fewer dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir_npu.dialect.bindings import ir, memref


def collapsed(value: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
    """`value`, a dense buffer, with each group of dimensions as one."""
    shape = [prod(value.type.shape[d] for d in group) for group in groups]
    type_ = ir.MemRefType.get(shape, value.type.element_type, memory_space=value.type.memory_space)
    return memref.CollapseShapeOp(type_, value, _reassociation(groups)).result


def without(value: ir.Value, dim: int) -> ir.Value:
    """`value`, a dense buffer, without its dimension `dim` of extent 1."""
    groups = [[d] for d in range(value.type.rank) if d != dim]
    partner = dim - 1 if dim else 0
    groups[partner] = sorted([*groups[partner], dim])
    return collapsed(value, groups)


def _reassociation(groups: Sequence[Sequence[int]]) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups]
    )
