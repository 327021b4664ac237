"""Views of buffers: with fewer dimensions, of boxes, and all that there are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.passes.kernels.walk import definition, integers, users


def subviews(buffer: ir.Value) -> list[ir.Value]:
    """All subviews of a buffer, nearest first."""
    found = []
    for user in users(buffer):
        if user.name == "memref.subview":
            found += [user.results[0], *subviews(user.results[0])]
    return found


def extents_of(view: ir.Value) -> list[int | ir.Value]:
    """The extents of a buffer; those that its type does not say are operands of its subview."""
    dynamic = ir.ShapedType.get_dynamic_size()
    made_by = definition(view)
    if made_by is None or made_by.name != "memref.subview":
        return list(view.type.shape)
    offsets, values = integers(made_by, "static_offsets"), list(made_by.operands)[1:]
    sizes = iter(values[offsets.count(dynamic) :])
    return [next(sizes) if n == dynamic else n for n in integers(made_by, "static_sizes")]


def box_of(
    source: ir.Value, starts: Sequence[int | ir.Value], sizes: Sequence[int | ir.Value]
) -> ir.Value:
    """The box of `source` at `starts`, with a type that is as static as its extents."""
    dynamic = ir.ShapedType.get_dynamic_size()
    static_sizes = [size if isinstance(size, int) else dynamic for size in sizes]
    static_starts = [start if isinstance(start, int) else dynamic for start in starts]
    strides, offset = source.type.get_strides_and_offset()
    if offset != dynamic and dynamic not in strides and dynamic not in static_starts:
        offset += sum(start * stride for start, stride in zip(static_starts, strides))
    else:
        offset = dynamic
    layout = ir.StridedLayoutAttr.get(offset, strides)
    type_ = ir.MemRefType.get(
        static_sizes, source.type.element_type, layout=layout, memory_space=source.type.memory_space
    )
    values = [[v for v in group if not isinstance(v, int)] for group in (starts, sizes)]
    return memref.SubViewOp(
        type_, source, *values, [], static_starts, static_sizes, [1] * len(sizes)
    ).result


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


def permuted_view(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """`value`, seen with its dimensions in another order."""
    strides, offset = value.type.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, [strides[d] for d in permutation])
    shape = [value.type.shape[d] for d in permutation]
    type_ = ir.MemRefType.get(shape, value.type.element_type, layout, value.type.memory_space)
    return memref.TransposeOp(type_, value, ir.AffineMap.get_permutation(permutation)).result


def _reassociation(groups: Sequence[Sequence[int]]) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups]
    )
