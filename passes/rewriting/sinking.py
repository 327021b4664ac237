"""Move transposes to channels first behind the operations that use their results.

Each rule rewrites one operation so that it works on the source of the transpose, and transposes its
result instead: `f(transpose(x))` becomes `transpose(f'(x))`.
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.permutation import inverse, is_channels_first, permuted
from mlir_npu.passes.rewriting.channels_last import reaches_channels_last
from mlir_npu.passes.rewriting.elementwise import is_settled, read_elementwise, rebuilt
from mlir_npu.passes.rewriting.generics import GENERIC
from mlir_npu.passes.rewriting.moves import concat, pad, read_pad, read_slice, slice_of
from mlir_npu.passes.rewriting.reductions import read_reduction, sink_into_reduction
from mlir_npu.passes.rewriting.transposes import (
    TRANSPOSE,
    marked_transpose,
    permutation_of,
    transpose_source,
    transposed,
)
from mlir_npu.passes.rewriting.values import before, is_static, replace, shape_of
from mlir_npu.passes.rewriting.views import reassociation, unviewed, viewed


def channels_first_source(value: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
    """The channels-last image that `value` is a transpose of, and the permutation.

    None if `value` is on its way into a channels-last operation: there layouts meet already.
    """
    made_by = transpose_source(value)
    if made_by is None or not is_channels_first(made_by[1]) or reaches_channels_last(value):
        return None
    return made_by


def sink_transpose(op: ir.Operation) -> None:
    """transpose(transpose(x)) is one transpose, or x."""
    if not is_static(op.operands[0]) or transpose_source(op.operands[0]) is None:
        return
    with before(op):
        replace(op, [marked_transpose(op.operands[0], permutation_of(op))])


def sink_pad(op: ir.Operation) -> None:
    found, padding = channels_first_source(op.operands[0]), read_pad(op)
    if found is None or padding is None:
        return
    source, permutation = found
    back = inverse(permutation)
    with before(op):
        result = pad(
            source, permuted(padding.low, back), permuted(padding.high, back), padding.value
        )
        replace(op, [marked_transpose(result, permutation)])


def sink_slice(op: ir.Operation) -> None:
    found, window = channels_first_source(op.operands[0]), read_slice(op)
    if found is None or window is None:
        return
    source, permutation = found
    with before(op):
        result = slice_of(source, window.permuted(inverse(permutation)))
        replace(op, [marked_transpose(result, permutation)])


def sink_concat(op: ir.Operation) -> None:
    found = next(filter(None, map(channels_first_source, op.operands)), None)
    if found is None or not all(is_static(value) for value in op.operands):
        return
    permutation = found[1]
    axis = permutation[ir.IntegerAttr(op.attributes["dim"]).value]
    with before(op):
        parts = [transposed(value, inverse(permutation)) for value in op.operands]
        replace(op, [marked_transpose(concat(axis, parts), permutation)])


def sink_reshape(op: ir.Operation) -> None:
    """A reshape commutes with a transpose if what it merges lies together in the source."""
    origin = unviewed(op.operands[0])
    if origin.type == op.results[0].type:
        replace(op, [origin])
        return
    found = channels_first_source(op.operands[0])
    if found is None or not is_static(op.results[0]) or not op.operands[0].type.rank:
        return
    source, permutation = found
    blocks = _blocks(op, permutation)
    order = _block_order(blocks, shape_of(source))
    if order is None:
        return
    target = shape_of(op.results[0])
    moved = [dim for block in order for dim in blocks[block][1]]
    with before(op):
        result = viewed(source, [target[dim] for dim in moved])
        replace(op, [marked_transpose(result, inverse(moved))])


def _blocks(op: ir.Operation, permutation) -> list[tuple[list[int], tuple[int, ...]]]:
    """Per group of the reshape: dimensions of the source, and of the result."""
    if op.name == "tensor.expand_shape":
        return [([permutation[i]], dims) for i, dims in enumerate(reassociation(op))]
    return [([permutation[i] for i in dims], (o,)) for o, dims in enumerate(reassociation(op))]


def _block_order(blocks, extents: tuple[int, ...]) -> list[int] | None:
    """The order of the blocks in the source; None if a block does not lie together there."""
    wide = [d for d in range(len(extents)) if extents[d] != 1]
    keys = []
    for positions, _ in blocks:
        own = [d for d in positions if extents[d] != 1]
        if own and wide[wide.index(own[0]) :][: len(own)] != own:
            return None
        keys.append(own[0] if own else min(positions))
    return sorted(range(len(blocks)), key=lambda block: keys[block])


def sink_generic(op: ir.Operation) -> None:
    reduction = read_reduction(op)
    if reduction is not None:
        sink_into_reduction(reduction)
        return
    generic = read_elementwise(op)
    if generic is None:
        return
    whole = [
        v for v, a in zip(generic.inputs, generic.accesses, strict=True) if generic.is_whole(a)
    ]
    shaped = [value for value in whole if isinstance(value.type, ir.ShapedType)]
    found = next(filter(None, map(channels_first_source, shaped)), None)
    if found is None and is_settled(generic):
        return
    permutation = found[1] if found is not None else tuple(range(generic.loops))
    with before(op):
        results = rebuilt(generic, inverse(permutation)).results
        replace(op, [marked_transpose(result, permutation) for result in results])


SINKING = {
    TRANSPOSE: sink_transpose,
    GENERIC: sink_generic,
    "tensor.pad": sink_pad,
    "tensor.extract_slice": sink_slice,
    "tensor.concat": sink_concat,
    "tensor.expand_shape": sink_reshape,
    "tensor.collapse_shape": sink_reshape,
}
