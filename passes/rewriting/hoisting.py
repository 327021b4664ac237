"""Move transposes to channels last in front of the operations that make their sources.

Each rule rewrites the producer of a transposed value: `transpose(f(x))` becomes `f'(transpose(x))`.
It applies where every user of the producer wants the same transpose, for a channels-last operation.
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.permutation import inverse, is_channels_last, keeps_order, permuted
from mlir_npu.passes.kernels.walk import definition, users
from mlir_npu.passes.rewriting.channels_last import reaches_channels_last
from mlir_npu.passes.rewriting.elementwise import read_elementwise, rebuilt
from mlir_npu.passes.rewriting.generics import GENERIC
from mlir_npu.passes.rewriting.moves import concat, pad, read_pad
from mlir_npu.passes.rewriting.transposes import (
    TRANSPOSE,
    permutation_of,
    transpose_source,
    transposed,
)
from mlir_npu.passes.rewriting.values import before, is_static, shape_of
from mlir_npu.passes.rewriting.views import reassociation, viewed

# More transposed operands than this cost more than the one transposed result.
MOVED_OPERANDS = 1


def hoist_transposes(block: ir.Block) -> None:
    """Apply the rules until none does, from the last transpose to the first."""
    while (found := _next(block)) is not None:
        producer, result = found
        for user in users(producer.results[0]):
            user.results[0].replace_all_uses_with(result)
            user.erase()
        producer.erase()


def _next(block: ir.Block):
    """The last producer that a rule rewrites, and its rewritten result."""
    for view in reversed(list(block.operations)):
        op = view.operation
        if op.name != TRANSPOSE or not is_channels_last(permutation_of(op)):
            continue
        if not reaches_channels_last(op.results[0]):
            continue
        producer, permutation = definition(op.operands[0]), permutation_of(op)
        if producer is None or not _all_want(producer, permutation):
            continue
        rule = HOISTING.get(producer.name)
        with before(producer):
            result = rule(producer, permutation) if rule is not None else None
        if result is not None:
            return producer, result
    return None


def _all_want(producer: ir.Operation, permutation) -> bool:
    return len(producer.results) == 1 and all(
        user.name == TRANSPOSE and permutation_of(user) == permutation
        for user in users(producer.results[0])
    )


def _moves_little(values: list[ir.Value], permutation) -> bool:
    """Whether at most `MOVED_OPERANDS` of the whole operands would need a transpose."""
    moved = [
        value
        for value in values
        if transpose_source(value) is None and not keeps_order(shape_of(value), permutation)
    ]
    return len(moved) <= MOVED_OPERANDS


def hoist_over_pad(op: ir.Operation, permutation) -> ir.Value | None:
    padding = read_pad(op)
    if padding is None:
        return None
    low, high = permuted(padding.low, permutation), permuted(padding.high, permutation)
    return pad(transposed(op.operands[0], permutation), low, high, padding.value)


def hoist_over_generic(op: ir.Operation, permutation) -> ir.Value | None:
    generic = read_elementwise(op)
    if generic is None:
        return None
    pairs = zip(generic.inputs, generic.accesses, strict=True)
    whole = [value for value, access in pairs if access and generic.is_whole(access)]
    if not _moves_little(whole, permutation):
        return None
    return rebuilt(generic, permutation).results[0]


def hoist_over_concat(op: ir.Operation, permutation) -> ir.Value | None:
    parts = list(op.operands)
    if not all(is_static(value) for value in parts) or not _moves_little(parts, permutation):
        return None
    axis = inverse(permutation)[ir.IntegerAttr(op.attributes["dim"]).value]
    return concat(axis, [transposed(value, permutation) for value in parts])


def hoist_over_collapse(op: ir.Operation, permutation) -> ir.Value | None:
    """Only where the transposes meet another one, in front of the reshape."""
    if transpose_source(op.operands[0]) is None or not is_static(op.operands[0]):
        return None
    groups = reassociation(op)
    moved = [dim for result in permutation for dim in groups[result]]
    shape = permuted(shape_of(op.results[0]), permutation)
    return viewed(transposed(op.operands[0], moved), shape)


def hoist_over_expand(op: ir.Operation, permutation) -> ir.Value | None:
    """Where the dimensions that one dimension is split into stay together."""
    groups = reassociation(op)
    if not is_static(op.operands[0]):
        return None
    order = sorted(range(len(groups)), key=lambda i: permutation.index(groups[i][0]))
    moved = [dim for i in order for dim in groups[i]]
    if moved != list(permutation) or not is_channels_last(order):
        return None
    return viewed(transposed(op.operands[0], order), permuted(shape_of(op.results[0]), permutation))


HOISTING = {
    GENERIC: hoist_over_generic,
    "tensor.pad": hoist_over_pad,
    "tensor.concat": hoist_over_concat,
    "tensor.collapse_shape": hoist_over_collapse,
    "tensor.expand_shape": hoist_over_expand,
}
