"""Take long reductions in two steps: parts side by side, then their results.

A reduction to few results keeps few threads busy, and one whose result lies along vectors adds
element after element to one accumulator, which loses digits. Both become a reduction of equal
parts, whose number is a new parallel loop, and one of the partial results. What does not fit in
equal parts is reduced first and is what the partial results are added to.

Before:
    %s = linalg.generic {sum over d0} ins(%x : tensor<1000000xf32>) outs(%zero : tensor<f32>)
After:
    %v = tensor.expand_shape %x [[0, 1]] : tensor<1000000xf32> into tensor<64x15625xf32>
    %p = linalg.generic {sum over d1} ins(%v) outs(%zeros : tensor<64xf32>)
    %s = linalg.generic {sum over d0} ins(%p) outs(%zero : tensor<f32>)
"""

from __future__ import annotations

from math import prod

from mlir_npu.dialect.bindings import arith, ir, tensor
from mlir_npu.passes.microkernels.combiners import combiner_of, identity_of
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.generics import Generic, body_of, build_generic, read_generic
from mlir_npu.passes.rewriting.values import before, element_type, filled, replace, shape_of
from mlir_npu.passes.rewriting.views import viewed

# Results that keep all threads busy; elements for which a second step pays.
FEW_RESULTS = 16
MANY_ELEMENTS = 32768
# Elements of one part; elements that one accumulator may add, and does in a part, or in a reduction
# alone, of which the parts are whole rows, for one thread each.
PART_ELEMENTS = 8192
LONG_SUM = 4096
SHORT_SUM = 1024
MAX_PARTS = 512


@register_pass("split-reductions")
def split_reductions(module: ir.Operation, options: NoOptions) -> None:
    for block in region_blocks(module):
        for view in list(block.operations):
            generic = read_generic(view.operation)
            if generic is not None and (plan := _plan(generic)) is not None:
                with before(generic.op):
                    replace(generic.op, [_split(generic, *plan)])


def _plan(generic: Generic) -> tuple[int, int, int] | None:
    """The loop to split, in how many parts of how many iterations."""
    if len(generic.inits) != 1 or not generic.reductions:
        return None
    if combiner_of(generic.op.regions[0].blocks[0]) is None:
        return None
    reduced = sorted(generic.reductions)
    length = prod(generic.extents[loop] for loop in reduced)
    results = prod(generic.extents) // length
    few = results < FEW_RESULTS and length * results >= MANY_ELEMENTS
    longest = SHORT_SUM if _is_alone(generic) else LONG_SUM
    if not few and (length <= longest or not _sums_along_vectors(generic)):
        return None
    least = -(-FEW_RESULTS // results) if few else 2
    wanted = length * results // PART_ELEMENTS if few else length // SHORT_SUM
    wanted = max(least, min(MAX_PARTS, wanted))
    for loop in reduced:
        if (parts := _parts(generic, loop, least, wanted)) is not None:
            return loop, *parts
    return None


def _is_alone(generic: Generic) -> bool:
    """Whether nothing else reads what it reads: it will not share a loop."""
    return all(len(list(value.uses)) == 1 for value in generic.inputs)


def _sums_along_vectors(generic: Generic) -> bool:
    """Whether neighbours in memory belong to different results."""
    return any(
        access and access[-1] is not None and access[-1] not in generic.reductions
        for access in generic.accesses
    )


def _parts(generic: Generic, loop: int, least: int, wanted: int) -> tuple[int, int] | None:
    """About `wanted` parts of a loop: equal ones, or with a rest if it is the outermost one."""
    extent = generic.extents[loop]
    if extent < 2 * least:
        return None
    wanted = min(wanted, extent // 2)
    nearby = range(max(least, wanted // 2), 2 * wanted + 1)
    fitting = [parts for parts in nearby if extent % parts == 0]
    if fitting:
        parts = min(fitting, key=lambda parts: abs(parts - wanted))
        return parts, extent // parts
    outermost = all(loop not in access or access[0] == loop for access in generic.accesses)
    return (wanted, extent // wanted) if outermost else None


def _split(generic: Generic, loop: int, parts: int, length: int) -> ir.Value:
    block = generic.op.regions[0].blocks[0]
    combiner = combiner_of(block)
    (init,) = generic.inits
    rest = generic.extents[loop] - parts * length
    if rest:
        init = _reduced(generic, loop, parts * length, rest, init)
    element = element_type(init)
    start = arith.ConstantOp(element, identity_of(combiner, element)).result
    partial = _partial(generic, loop, parts, length, filled((parts, *shape_of(init)), start))

    def join(arguments: list[ir.Value]) -> list[ir.Value]:
        made = ir.Operation.create(combiner, results=[element], operands=arguments)
        return [made.results[0]]

    rank = len(shape_of(init))
    result = tuple(range(1, rank + 1))
    joined = build_generic(
        [partial], [(0, *result)], [init], [result], frozenset({0}), rank + 1, join
    )
    return joined.results[0]


def _reduced(generic: Generic, loop: int, low: int, extent: int, init: ir.Value) -> ir.Value:
    """The reduction over iterations [low, low + extent) of a loop alone."""
    inputs = [
        _slice(value, access.index(loop), low, extent) if loop in access else value
        for value, access in zip(generic.inputs, generic.accesses, strict=True)
    ]
    op = build_generic(
        inputs,
        generic.accesses,
        [init],
        generic.output_accesses,
        generic.reductions,
        generic.loops,
        body_of(generic.op),
    )
    return op.results[0]


def _partial(generic: Generic, loop: int, parts: int, length: int, init: ir.Value) -> ir.Value:
    """The reduction with its loop as two, the outer one parallel and first in the result."""

    def moved(access):
        moves = [()] * len(access)
        for place, own in enumerate(access):
            if own == loop:
                moves[place] = (loop, loop + 1)
            else:
                moves[place] = (None if own is None else own + (own > loop),)
        return tuple(new for move in moves for new in move)

    inputs = []
    for value, access in zip(generic.inputs, generic.accesses, strict=True):
        if loop in access:
            place = access.index(loop)
            value = _slice(value, place, 0, parts * length)
            shape = shape_of(value)
            value = viewed(value, [*shape[:place], parts, length, *shape[place + 1 :]])
        inputs.append(value)
    op = build_generic(
        inputs,
        [moved(access) for access in generic.accesses],
        [init],
        [(loop, *moved(generic.output_accesses[0]))],
        frozenset(own + (own >= loop) for own in generic.reductions),
        generic.loops + 1,
        body_of(generic.op),
    )
    return op.results[0]


def _slice(value: ir.Value, place: int, low: int, extent: int) -> ir.Value:
    shape = list(shape_of(value))
    if shape[place] == extent:
        return value
    offsets, ones = [0] * len(shape), [1] * len(shape)
    offsets[place], shape[place] = low, extent
    type_ = ir.RankedTensorType.get(shape, element_type(value))
    return tensor.ExtractSliceOp(type_, value, [], [], [], offsets, shape, ones).result
