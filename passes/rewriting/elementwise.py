"""Elementwise generics in other orders and groupings of their loops.

In normal form every operand of an elementwise generic is there once and indexed by loops in
increasing order, without constants: a broadcast operand has lost its dimensions of extent 1. Such
an operand can be reshaped together with the loops.
"""

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.permutation import Group, groups, inverse, permuted
from mlir_npu.passes.rewriting.generics import Access, Generic, body_of, build_generic, read_generic
from mlir_npu.passes.rewriting.transposes import transposed
from mlir_npu.passes.rewriting.values import (
    element_type,
    empty,
    is_uniform,
    shape_of,
    uniform_scalar,
)
from mlir_npu.passes.rewriting.views import viewed


def read_elementwise(op: ir.Operation | None) -> Generic | None:
    generic = read_generic(op)
    return generic if generic is not None and generic.is_elementwise else None


def settled(value: ir.Value, access: Access, loops: int) -> tuple[ir.Value, Access]:
    """An operand in normal form: loops in order by a transpose, unit dimensions dropped."""
    if not access or access == tuple(range(loops)):
        return value, access
    extents = shape_of(value)
    used = [d for d, loop in enumerate(access) if loop is not None]
    if len(used) < loops:
        used = [d for d in used if extents[d] != 1]
    used.sort(key=lambda d: access[d])
    dropped = [d for d in range(len(access)) if d not in used]
    value = transposed(value, [*used, *dropped])
    return viewed(value, [extents[d] for d in used]), tuple(access[d] for d in used)


def is_settled(generic: Generic) -> bool:
    """Whether all operands are in normal form already."""
    operands = list(zip(generic.inputs, generic.accesses, strict=True))
    distinct = all(pair not in operands[:i] for i, pair in enumerate(operands))
    return distinct and all(_operand_is_settled(generic, *pair) for pair in operands)


def _operand_is_settled(generic: Generic, value: ir.Value, access: Access) -> bool:
    if not isinstance(value.type, ir.ShapedType) or is_uniform(value):
        return False  # scalars belong into the body
    loops = [loop for loop in access if loop is not None]
    if len(loops) < len(access) or loops != sorted(loops):
        return False
    return generic.is_whole(access) or 1 not in shape_of(value)


def rebuilt(generic: Generic, order: Sequence[int]) -> ir.Operation:
    """The elementwise `generic` with loop `order[i]` as its loop i, operands in normal form."""
    position = inverse(order)
    inputs, accesses = [], []
    for value, access in zip(generic.inputs, generic.accesses, strict=True):
        if isinstance(value.type, ir.ShapedType) and is_uniform(value):
            value, access = uniform_scalar(value), ()
        elif isinstance(value.type, ir.ShapedType):
            moved = tuple(None if loop is None else position[loop] for loop in access)
            value, access = settled(value, moved, generic.loops)
        inputs.append(value)
        accesses.append(access)
    return build_elementwise(generic, inputs, accesses, permuted(generic.extents, order))


def reshaped(generic: Generic, shape: Sequence[int]) -> ir.Operation | None:
    """The elementwise `generic`, in normal form, over loops of `shape`, or None.

    A broadcast operand must have all loops of a group that is split or merged, or none.
    """
    grouping = groups(generic.extents, tuple(shape))
    if grouping is None:
        return None
    accesses = [_regrouped(generic, a, grouping, shape) for a in generic.accesses]
    if None in accesses:
        return None
    inputs = [
        viewed(value, [shape[loop] for loop in access]) if access else value
        for value, access in zip(generic.inputs, accesses, strict=True)
    ]
    return build_elementwise(generic, inputs, accesses, tuple(shape))


def _regrouped(
    generic: Generic, access: Access, grouping: tuple[Group, ...], shape
) -> Access | None:
    if not access:
        return access
    if generic.is_whole(access):
        return tuple(range(len(shape)))
    found: list[int] = []
    for group in grouping:
        wide = [loop for loop in group.source if generic.extents[loop] != 1]
        used = [loop for loop in wide if loop in access]
        if len(used) not in (0, len(wide)):
            return None
        if used:
            found += [loop for loop in group.target if shape[loop] != 1]
    return tuple(found)


def build_elementwise(
    generic: Generic, inputs: Sequence[ir.Value], accesses: Sequence[Access], shape: Sequence[int]
) -> ir.Operation:
    """`generic`'s body over loops of `shape`, with a result of that shape per old one."""
    inits = [empty(shape, element_type(result)) for result in generic.op.results]
    whole = tuple(range(len(shape)))
    outputs = [whole] * len(inits)
    body = body_of(generic.op)
    return build_generic(inputs, accesses, inits, outputs, frozenset(), len(shape), body)
