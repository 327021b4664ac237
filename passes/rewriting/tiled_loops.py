"""Kernels with one loop over tiles, in which several generics run one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir_npu.dialect.bindings import arith, func, ir, linalg, scf, tensor
from mlir_npu.passes.analysis.loop_groups import Access, LoopGroup
from mlir_npu.passes.analysis.loop_tiles import trips
from mlir_npu.passes.kernels.walk import definition
from mlir_npu.passes.rewriting.dependence import used_values
from mlir_npu.passes.rewriting.generics import Generic, affine_map, build_with_maps
from mlir_npu.passes.rewriting.outlining import clone_renamed, scalar_producers
from mlir_npu.passes.rewriting.values import before, element_type, empty, fill_scalar, shape_of

DYNAMIC = ir.ShapedType.get_dynamic_size()
Members = Mapping[int, Generic]


def build_kernel(
    module: ir.Operation, name: str, members: Members, group: LoopGroup, sizes: Sequence[int]
) -> tuple[ir.Operation, ir.Operation]:
    """The function `name` for a group, and a call of it at the group's last member.

    The members are erased, what used their results uses those of the call. Of slices the function
    takes the whole, which as an argument does not have to be copied.
    """
    ops = [members[m].op for m in group.members]
    scalars = scalar_producers([*ops, *_starts(members.values())])
    read = _outside(members.values(), scalars)
    slices = _constant_slices(read)
    cut = {op.results[0] for op in slices}
    sources = [op.operands[0] for op in slices]
    outside = [value for value in dict.fromkeys([*read, *sources]) if value not in cut]
    escaping = _escaping(ops)
    types = [value.type for value in outside], [value.type for value in escaping]
    with ir.InsertionPoint(module.regions[0].blocks[0]), ops[-1].location:
        function = func.FuncOp(name, types, visibility="private")
        block = function.add_entry_block()
    with ir.InsertionPoint(block), ops[-1].location:
        known = dict(zip(outside, block.arguments, strict=True))
        for op in (*slices, *scalars):
            known.update(zip(op.results, clone_renamed(op, known).results, strict=True))
        results = _Loop(members, group, sizes, known).build(escaping)
        func.ReturnOp(results)
    with before(_latest(ops)):
        call = func.CallOp(types[1], name, outside).operation
    for value, result in zip(escaping, call.results, strict=True):
        value.replace_all_uses_with(result)
    return function.operation, call


def _latest(ops: Sequence[ir.Operation]) -> ir.Operation:
    """The one that all others stand in front of: calls of other groups may have moved some."""
    wanted = set(ops)
    return [v.operation for v in ops[0].block.operations if v.operation in wanted][-1]


def move_behind(call: ir.Operation, members: Sequence[ir.Operation]) -> None:
    """Move what uses results of `call` behind it, and erase the members that it replaces."""
    block = call.block
    for op in reversed(members):
        op.erase()
    ops = [view.operation for view in block.operations]
    late = set(call.results)
    last = call
    for op in ops[: ops.index(call)]:
        if any(value in late for value in used_values(op)):
            op.move_after(last)
            last = op
            late.update(op.results)


def _starts(members) -> list[ir.Operation]:
    return [definition(init) for generic in members for init in generic.inits if generic.reductions]


def _outside(members, scalars: Sequence[ir.Operation]) -> list[ir.Value]:
    """Tensors that members or scalars read and no member makes, in order of first use."""
    made = {result for generic in members for result in generic.op.results}
    read = [value for op in scalars for value in op.operands]
    read += [value for generic in members for value in generic.inputs]
    tensors = (value for value in read if isinstance(value.type, ir.RankedTensorType))
    return [value for value in dict.fromkeys(tensors) if value not in made]


def _constant_slices(values: Sequence[ir.Value]) -> list[ir.Operation]:
    """Slices with constant bounds that make values, or what others are slices of; sources first."""
    found: dict[ir.Operation, None] = {}
    for value in values:
        chain = []
        while (op := definition(value)) is not None and op.name == "tensor.extract_slice":
            if len(op.operands) > 1:
                break
            chain.append(op)
            value = op.operands[0]
        found.update(dict.fromkeys(reversed(chain)))
    return list(found)


def _escaping(ops: Sequence[ir.Operation]) -> list[ir.Value]:
    """Results that something else than a member uses."""
    return [
        result
        for op in ops
        for result in op.results
        if any(use.owner.operation not in ops for use in result.uses)
    ]


class _Loop:
    """The loop of one kernel. `known`: what the values outside of it are called inside."""

    def __init__(
        self,
        members: Members,
        group: LoopGroup,
        sizes: Sequence[int],
        known: dict[ir.Value, ir.Value],
    ):
        self._members, self._group, self._sizes = members, group, tuple(sizes)
        self._known = known
        self._offsets: list[ir.Value | int] = [0] * len(sizes)

    def build(self, escaping: Sequence[ir.Value]) -> list[ir.Value]:
        counts = trips(self._group.extents, self._sizes)
        looped = [i for i, count in enumerate(counts) if count > 1]
        empties = [empty(shape_of(value), element_type(value)) for value in escaping]
        if not looped:
            return self._members_on(dict(zip(escaping, empties, strict=True)))
        upper = [counts[i] for i in looped]
        loop = scf.ForallOp([0] * len(looped), upper, [1] * len(looped), empties)
        with ir.InsertionPoint(loop.body):
            for i, counter in zip(looped, loop.induction_variables, strict=True):
                self._offsets[i] = self._offset(i, counter, counts[i])
            whole = dict(zip(escaping, loop.inner_iter_args, strict=True))
            tiles = self._members_on(whole)
            terminator = scf.InParallelOp()
        block = terminator.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            for value, tile in zip(escaping, tiles, strict=True):
                self._insert(value, tile, whole[value])
        return list(loop.results)

    def _offset(self, dim: int, counter: ir.Value, count: int) -> ir.Value:
        """First iteration of a tile; the last tile starts where a whole one still fits."""
        size, extent = self._sizes[dim], self._group.extents[dim]
        start = arith.MulIOp(counter, _index(size)).result
        if count * size == extent:
            return start
        return arith.MinSIOp(start, _index(extent - size)).result

    def _members_on(self, whole: dict[ir.Value, ir.Value]) -> list[ir.Value]:
        """All members on the tile; the tiles of the keys of `whole`, written into their values."""
        for member, generic in sorted(self._members.items()):
            self._known.update(zip(generic.op.results, self._tile_of(member, generic, whole)))
        return [self._known[value] for value in whole]

    def _tile_of(
        self, member: int, generic: Generic, whole: dict[ir.Value, ir.Value]
    ) -> list[ir.Value]:
        made = {result for other in self._members.values() for result in other.op.results}
        inputs, accesses = [], []
        for value, access in zip(generic.inputs, generic.accesses, strict=True):
            if not isinstance(value.type, ir.RankedTensorType):
                value = self._known[value]
                inputs.append(value)
            elif value in made:
                inputs.append(self._known[value])
            else:
                inputs.append(self._slice(self._known[value], member, access))
            accesses.append(access)
        inits = []
        for place, result in enumerate(generic.op.results):
            access = generic.output_accesses[place]
            if result in whole:
                init = self._slice(whole[result], member, access)
            else:
                init = empty(self._extents(shape_of(result), member, access), element_type(result))
            if generic.reductions:
                init = filled_like(init, self._known[fill_scalar(generic.inits[place])])
            inits.append(init)
        return self._generic(generic, inputs, accesses, inits)

    def _generic(self, generic: Generic, inputs, accesses, inits) -> list[ir.Value]:
        loops = generic.loops
        maps = [affine_map(loops, access) for access in (*accesses, *generic.output_accesses)]
        kinds = ["reduction" if i in generic.reductions else "parallel" for i in range(loops)]

        def body(arguments: list[ir.Value]) -> list[ir.Value]:
            block = generic.op.regions[0].blocks[0]
            known = self._known | dict(zip(block.arguments, arguments, strict=True))
            for view in block.operations:
                op = view.operation
                if op.name == "linalg.yield":
                    return [known[value] for value in op.operands]
                known.update(zip(op.results, clone_renamed(op, known).results, strict=True))
            raise ValueError("a body without linalg.yield")

        return list(build_with_maps(inputs, inits, maps, kinds, body).results)

    def _places(self, member: int, access: Access) -> dict[int, int]:
        """Outer loop of every dimension that an outer loop walks."""
        outer = self._group.loops[member]
        return {d: outer.index(loop) for d, loop in enumerate(access) if loop in outer}

    def _extents(self, shape: Sequence[int], member: int, access: Access) -> list[int]:
        places = self._places(member, access)
        return [self._sizes[places[d]] if d in places else e for d, e in enumerate(shape)]

    def _window(self, value: ir.Value, member: int, access: Access):
        places = self._places(member, access)
        shape = shape_of(value)
        offsets = [self._offsets[places[d]] if d in places else 0 for d in range(len(shape))]
        dynamic = [offset for offset in offsets if not isinstance(offset, int)]
        static = [offset if isinstance(offset, int) else DYNAMIC for offset in offsets]
        return dynamic, static, self._extents(shape, member, access)

    def _slice(self, value: ir.Value, member: int, access: Access) -> ir.Value:
        dynamic, static, sizes = self._window(value, member, access)
        if list(shape_of(value)) == sizes and not dynamic:
            return value
        type_ = ir.RankedTensorType.get(sizes, element_type(value))
        ones = [1] * len(sizes)
        return tensor.ExtractSliceOp(type_, value, dynamic, [], [], static, sizes, ones).result

    def _insert(self, value: ir.Value, tile: ir.Value, whole: ir.Value) -> None:
        member, generic = next(
            (m, g) for m, g in self._members.items() if value in list(g.op.results)
        )
        access = generic.output_accesses[list(generic.op.results).index(value)]
        dynamic, static, sizes = self._window(value, member, access)
        ones = [1] * len(sizes)
        tensor.ParallelInsertSliceOp(tile, whole, dynamic, [], [], static, sizes, ones)


def filled_like(init: ir.Value, scalar: ir.Value) -> ir.Value:
    """`init` with every element set to `scalar`."""
    op = linalg.FillOp([init.type], [scalar], [init])
    linalg.fill_builtin_region(op.operation)
    return op.operation.results[0]


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
