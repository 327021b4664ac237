"""A result that is computed beyond its end: what follows works on all of it, and cuts it off last.

An elementwise operation can then be the epilogue of what made the whole, and one copy, or none,
remains of cutting.

Before:
    %r = tensor.extract_slice %whole : 1x56x56x64 to 1x55x55x64
    %s = linalg.generic {add, relu} ins(%r, %shift : 1x55x55x64, 64)
After:
    %t = linalg.generic {add, relu} ins(%whole, %shift : 1x56x56x64, 64)
    %s = tensor.extract_slice %t : 1x56x56x64 to 1x55x55x64
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import users
from mlir_npu.passes.rewriting.elementwise import build_elementwise, read_elementwise
from mlir_npu.passes.rewriting.generics import Generic
from mlir_npu.passes.rewriting.moves import Slice, slice_of
from mlir_npu.passes.rewriting.values import before, replace, shape_of


def cut_last(part: ir.Value, whole: ir.Value) -> None:
    """Let the elementwise operation that alone uses `part`, the leading part of `whole`, go first.

    Its other operands must be the same all along the dimensions that are cut.
    """
    followers = users(part)
    generic = read_elementwise(followers[0]) if len(followers) == 1 else None
    if generic is None or not _takes_all(generic, part, whole):
        return
    shape = shape_of(whole)
    inputs = [whole if value == part else value for value in generic.inputs]
    with before(generic.op):
        longer = build_elementwise(generic, inputs, generic.accesses, shape)
        sizes = shape_of(part)
        cut = Slice((0,) * len(sizes), sizes, (1,) * len(sizes))
        replace(generic.op, [slice_of(result, cut) for result in longer.results])


def _takes_all(generic: Generic, part: ir.Value, whole: ir.Value) -> bool:
    cut = {d for d, pair in enumerate(zip(shape_of(part), shape_of(whole))) if pair[0] != pair[1]}
    operands = zip(generic.inputs, generic.accesses, strict=True)
    return all(
        generic.is_whole(access) if value == part else cut.isdisjoint(access)
        for value, access in operands
    )
