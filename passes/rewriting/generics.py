"""`linalg.generic` as data: operands, which loops index them, and how to build one again.

An access lists, per dimension of an operand, the loop that indexes it; None is the constant 0,
which broadcasts an extent of 1. Only operations whose maps have this form are read: elementwise
chains, broadcasts and reductions, not windows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir, linalg

GENERIC = "linalg.generic"
Access = tuple[int | None, ...]
Body = Callable[[list[ir.Value]], list[ir.Value]]

# The body has no memory, no other tensors and no notion of where it is.
_BODY_DIALECTS = ("arith.", "math.", "linalg.yield")


@dataclass(frozen=True)
class Generic:
    """A `linalg.generic` with simple maps.

    `inputs` may hold scalars (access ()). `inits` and `output_accesses` belong to the results.
    `reads_init`: per result, whether the body uses what the result held before.
    """

    op: ir.Operation
    inputs: tuple[ir.Value, ...]
    accesses: tuple[Access, ...]
    inits: tuple[ir.Value, ...]
    output_accesses: tuple[Access, ...]
    extents: tuple[int, ...]
    reductions: frozenset[int]
    reads_init: tuple[bool, ...]

    @property
    def loops(self) -> int:
        return len(self.extents)

    @property
    def is_elementwise(self) -> bool:
        """All loops parallel, results indexed by the loops in order, nothing accumulated."""
        return (
            not self.reductions
            and not any(self.reads_init)
            and all(self.is_whole(access) for access in self.output_accesses)
        )

    def is_whole(self, access: Access) -> bool:
        """Whether an operand has one element per iteration, in order."""
        return access == tuple(range(self.loops))


def read_generic(op: ir.Operation | None) -> Generic | None:
    """`op` as data; None if no generic, or with other maps, dynamic extents, unusual body."""
    if op is None or op.name != GENERIC or not has_plain_body(op):
        return None
    types = [value.type for value in op.operands]
    shaped = [type_ for type_ in types if isinstance(type_, ir.ShapedType)]
    if not all(isinstance(t, ir.RankedTensorType) and t.has_static_shape for t in shaped):
        return None
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    accesses = [_read_map(map_) for map_ in maps]
    if None in accesses:
        return None
    extents = _loop_extents(types, accesses, maps[0].n_dims)
    if extents is None:
        return None
    inputs = len(op.operands) - len(op.results)
    arguments = list(op.regions[0].blocks[0].arguments)
    return Generic(
        op,
        tuple(op.operands)[:inputs],
        tuple(accesses[:inputs]),
        tuple(op.operands)[inputs:],
        tuple(accesses[inputs:]),
        extents,
        _reductions(op),
        tuple(any(True for _ in argument.uses) for argument in arguments[inputs:]),
    )


def has_plain_body(op: ir.Operation) -> bool:
    """Whether the body of a linalg op is arithmetic on its scalars and nothing else."""
    if len(op.regions) != 1:
        return False
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    return all(o.name.startswith(_BODY_DIALECTS) and not len(o.regions) for o in body)


def _read_map(map_: ir.AffineMap) -> Access | None:
    access: list[int | None] = []
    for expression in map_.results:
        if isinstance(expression, ir.AffineDimExpr):
            access.append(expression.position)
        elif isinstance(expression, ir.AffineConstantExpr) and expression.value == 0:
            access.append(None)
        else:
            return None
    used = [loop for loop in access if loop is not None]
    return tuple(access) if len(set(used)) == len(used) else None


def _loop_extents(
    types: list[ir.Type], accesses: list[Access], loops: int
) -> tuple[int, ...] | None:
    found: dict[int, int] = {}
    for type_, access in zip(types, accesses, strict=True):
        for loop, extent in zip(access, type_.shape if access else (), strict=True):
            if loop is not None:
                found[loop] = extent
    return tuple(found[loop] for loop in range(loops)) if len(found) == loops else None


def _reductions(op: ir.Operation) -> frozenset[int]:
    kinds = str(op.attributes["iterator_types"]).split(",")  # one by one takes longer
    return frozenset(loop for loop, kind in enumerate(kinds) if "parallel" not in kind)


def affine_map(loops: int, access: Sequence[int | None]) -> ir.AffineMap:
    """The map of an access over `loops` loops."""
    constant, dim = ir.AffineConstantExpr.get, ir.AffineDimExpr.get
    return ir.AffineMap.get(loops, 0, [constant(0) if d is None else dim(d) for d in access])


def reach_all(accesses: Sequence[Access], loops: int) -> bool:
    """Whether operands with these accesses tell how far every loop goes, as a generic must."""
    return {loop for access in accesses for loop in access}.issuperset(range(loops))


def build_generic(
    inputs: Sequence[ir.Value],
    accesses: Sequence[Access],
    inits: Sequence[ir.Value],
    output_accesses: Sequence[Access],
    reductions: frozenset[int],
    loops: int,
    body: Body,
) -> ir.Operation:
    """A generic whose `body` maps one scalar per input and init to one scalar per result.

    Scalar inputs are used in the body directly, equal inputs share an operand, and inputs that the
    body does not use are left out.
    """
    operands, slots = _distinct_tensors(inputs, accesses)
    maps = [affine_map(loops, access) for _, access in operands]
    maps += [affine_map(loops, access) for access in output_accesses]
    kinds = ["reduction" if i in reductions else "parallel" for i in range(loops)]

    def with_scalars(arguments: list[ir.Value]) -> list[ir.Value]:
        given = zip(inputs, slots, strict=True)
        scalars = [value if slot is None else arguments[slot] for value, slot in given]
        return body(scalars + arguments[len(operands) :])

    op = build_with_maps([value for value, _ in operands], inits, maps, kinds, with_scalars)
    return _without_unused_inputs(op, len(operands))


def build_with_maps(
    inputs: Sequence[ir.Value],
    inits: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    kinds: Sequence[str],
    body: Body,
) -> ir.Operation:
    """A generic with exactly these operands, maps and iterator kinds ("parallel", "reduction")."""
    op = linalg.GenericOp(
        [init.type for init in inits],
        list(inputs),
        list(inits),
        ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        iterator_types(kinds),
    ).operation
    types = [_scalar_type(value) for value in op.operands]
    block = op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block):
        linalg.YieldOp(body(list(block.arguments)))
    return op


def iterator_types(kinds: Sequence[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get(
        [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    )


def _scalar_type(value: ir.Value) -> ir.Type:
    return ir.ShapedType(value.type).element_type


def _distinct_tensors(inputs, accesses):
    """Distinct tensor operands with their accesses, and for every input its operand or None."""
    operands: list[tuple[ir.Value, Access]] = []
    slots: list[int | None] = []
    for value, access in zip(inputs, accesses, strict=True):
        if not isinstance(value.type, ir.ShapedType):
            slots.append(None)
            continue
        if (value, access) not in operands:
            operands.append((value, access))
        slots.append(operands.index((value, access)))
    return operands, slots


def _without_unused_inputs(op: ir.Operation, inputs: int) -> ir.Operation:
    block = op.regions[0].blocks[0]
    unused = [
        i
        for i, argument in enumerate(list(block.arguments)[:inputs])
        if not any(True for _ in argument.uses)
    ]
    # Without any input the loop extents come from the inits, which always stay.
    if not unused:
        return op
    for index in reversed(unused):
        block.erase_argument(index)
    keep = [i for i in range(len(op.operands)) if i not in unused]
    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    slim = linalg.GenericOp(
        [r.type for r in op.results],
        [op.operands[i] for i in keep if i < inputs],
        [op.operands[i] for i in keep if i >= inputs],
        ir.ArrayAttr.get([maps[i] for i in keep]),
        op.attributes["iterator_types"],
    ).operation
    block.append_to(slim.regions[0])
    op.erase()
    return slim


def body_of(op: ir.Operation) -> Body:
    """The body of a generic or named linalg op, to be cloned into a generic under construction."""
    block = op.regions[0].blocks[0]

    def clone(scalars: list[ir.Value]) -> list[ir.Value]:
        known = dict(zip(block.arguments, scalars, strict=True))
        for view in block.operations:
            if view.operation.name == "linalg.yield":
                return [known.get(value, value) for value in view.operation.operands]
            copy = view.operation.clone()
            for i, value in enumerate(copy.operands):
                copy.operands[i] = known.get(value, value)
            known.update(zip(view.operation.results, copy.results, strict=True))
        raise ValueError(f"body of {op.name} has no linalg.yield")

    return clone
