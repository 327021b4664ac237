"""Compute once what is the same in many iterations.

Fusion puts a function of one number per row, such as the logarithm of a sum, in front of each of
its elements. Where that costs more than reading a value does, it becomes a generic of its own
again, over the loops that it depends on.

Before:
    %r = linalg.generic ins(%x, %s : tensor<8x768xf32>, tensor<8xf32>) { x - log(s) }
After:
    %l = linalg.generic ins(%s : tensor<8xf32>) { log(s) }
    %r = linalg.generic ins(%x, %l : tensor<8x768xf32>, tensor<8xf32>) { x - l }
"""

from __future__ import annotations

from math import prod

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.generics import Generic, build_generic, read_generic
from mlir_npu.passes.rewriting.values import before, empty, replace

# Iterations that share a value, from which computing it once pays.
LEAST_SHARED = 16
_CHEAP = ("math.absf", "math.fma", "math.copysign", "math.floor", "math.ceil", "math.trunc")
_DIVISIONS = ("arith.divf", "arith.divsi", "arith.remf", "arith.remsi")

Loops = frozenset[int]


@register_pass("hoist-broadcasts")
def hoist_broadcasts(module: ir.Operation, options: NoOptions) -> None:
    for block in region_blocks(module):
        for view in list(block.operations):
            generic = read_generic(view.operation)
            if generic is not None and (found := _shared(generic)):
                with before(generic.op):
                    replace(generic.op, list(_hoisted(generic, found).results))


def _shared(generic: Generic) -> dict[ir.Value, Loops]:
    """Values of the body to compute once, with the loops that they depend on."""
    loops = _dependence(generic)
    costly: set[ir.Value] = set()
    found = {}
    for op in _body(generic):
        value = op.results[0]
        if _is_costly(op) or any(operand in costly for operand in op.operands):
            costly.add(value)
        shared = prod(e for loop, e in enumerate(generic.extents) if loop not in loops[value])
        if value not in costly or shared < LEAST_SHARED:
            continue
        users = [use.owner.operation for use in value.uses]
        if any(not user.results or loops[user.results[0]] != loops[value] for user in users):
            found[value] = loops[value]
    return found


def _dependence(generic: Generic) -> dict[ir.Value, Loops]:
    """The loops that arguments and values of the body depend on."""
    arguments = list(generic.op.regions[0].blocks[0].arguments)
    accesses = (*generic.accesses, *generic.output_accesses)
    loops = {
        argument: frozenset(loop for loop in access if loop is not None)
        for argument, access in zip(arguments, accesses, strict=True)
    }
    for argument in arguments[len(generic.inputs) :]:
        loops[argument] = frozenset(range(generic.loops))  # what was accumulated before
    for op in _body(generic):
        of_operands = [loops.get(operand, frozenset()) for operand in op.operands]
        loops[op.results[0]] = frozenset().union(*of_operands)
    return loops


def _body(generic: Generic) -> list[ir.Operation]:
    *body, _ = generic.op.regions[0].blocks[0].operations
    return [view.operation for view in body]


def _is_costly(op: ir.Operation) -> bool:
    return op.name in _DIVISIONS or (op.name.startswith("math.") and op.name not in _CHEAP)


def _hoisted(generic: Generic, found: dict[ir.Value, Loops]) -> ir.Operation:
    inputs, accesses = list(generic.inputs), list(generic.accesses)
    for value, loops in found.items():
        inputs.append(_alone(generic, value, sorted(loops)))
        accesses.append(tuple(sorted(loops)))
    old = list(generic.op.regions[0].blocks[0].arguments)
    count = len(generic.inputs)

    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        known = dict(zip(old[:count], scalars))
        known |= dict(zip(found, scalars[count:]))
        known |= dict(zip(old[count:], scalars[len(inputs) :]))
        terminator = list(generic.op.regions[0].blocks[0].operations)[-1].operation
        return [_copied(value, known) for value in terminator.operands]

    return build_generic(
        inputs,
        accesses,
        generic.inits,
        generic.output_accesses,
        generic.reductions,
        generic.loops,
        body,
    )


def _alone(generic: Generic, value: ir.Value, loops: list[int]) -> ir.Value:
    """A tensor of the value for every iteration of the loops that it depends on."""
    arguments = list(generic.op.regions[0].blocks[0].arguments)
    place = {loop: position for position, loop in enumerate(loops)}
    used = [i for i, access in enumerate(generic.accesses) if place.keys() >= {*access} - {None}]
    accesses = [
        tuple(None if loop is None else place[loop] for loop in generic.accesses[i]) for i in used
    ]
    init = empty([generic.extents[loop] for loop in loops], value.type)

    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        return [_copied(value, {arguments[i]: scalar for i, scalar in zip(used, scalars)})]

    op = build_generic(
        [generic.inputs[i] for i in used],
        accesses,
        [init],
        [tuple(range(len(loops)))],
        frozenset(),
        len(loops),
        body,
    )
    return op.results[0]


def _copied(value: ir.Value, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """A copy, at the insertion point, of what makes a value of the body."""
    if value in known:
        return known[value]
    if isinstance(value.owner, ir.Block) or value.owner.parent.name != "linalg.generic":
        return value  # from outside
    operands = [_copied(operand, known) for operand in value.owner.operands]
    copy = value.owner.operation.clone()
    for place, operand in enumerate(operands):
        copy.operands[place] = operand
    known[value] = copy.results[0]
    return copy.results[0]
