"""Give computations that can share a loop over tiles a private function with that loop.

For host parts, whose computations are chains of elementwise ops and reductions: a group (see
analysis/loop_groups.py) becomes a kernel with one `scf.forall` over tiles, in which its members
run one after the other on what stays in cache. `npu.schedule` says whether threads share the loop.
A tile that would reach over the end starts earlier instead, so that all are equal.

Before:
    %m = linalg.generic {maximum over d1} ins(%x)
    %e = linalg.generic {exp(x - m)} ins(%x, %m)
    %s = linalg.generic {sum over d1} ins(%e)
    %r = linalg.generic {e / s} ins(%e, %s)
After:
    %r = call @loops_0(%x)
    func.func private @loops_0(%x) attributes {npu.kernel = "loops", npu.schedule = {...}} {
      scf.forall (%i) in (8) shared_outs(%o = %empty) {
        %t = tensor.extract_slice %x[8 * %i, 0] [8, 768]
        the four generics on eight rows
        scf.forall.in_parallel { tensor.parallel_insert_slice %p into %o[8 * %i, 0] [8, 768] } } }
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.analysis.loop_groups import Computation, Use, find_groups
from mlir_npu.passes.analysis.loop_tiles import choose_loop_tiles
from mlir_npu.passes.kernels.schedule import SCHEDULE
from mlir_npu.passes.kernels.walk import KERNEL, definition
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.dependence import used_values
from mlir_npu.passes.rewriting.functions import region_functions
from mlir_npu.passes.rewriting.generics import Generic, read_generic
from mlir_npu.passes.rewriting.tiled_loops import build_kernel, move_behind
from mlir_npu.passes.rewriting.values import before, erase_unused, fill_scalar, filled, shape_of

KIND = "loops"
# Arithmetic of one element, in additions.
_FUNCTION_WORK = 12
_DIVISION_WORK = 4
_CHEAP_MATH = ("math.absf", "math.fma", "math.copysign", "math.floor", "math.ceil", "math.trunc")


@register_pass("form-loop-groups")
def form_loop_groups(module: ir.Operation, options: NoOptions) -> None:
    cores = target_of(module).cores
    count = 0
    for function in region_functions(module):
        block = function.regions[0].blocks[0]
        _own_starts(block)
        ops = [view.operation for view in block.operations]
        generics = [_computing(op) for op in ops]
        computations = [generic and _computation(generic) for generic in generics]
        for group in find_groups(computations, _before(ops)):
            # read again: what a member reads may be a result of an earlier group's call by now
            members = {m: read_generic(ops[m]) for m in group.members}
            work = sum(_work(generic) for generic in members.values())
            tiles = choose_loop_tiles(group, computations, work, cores)
            kernel, call = build_kernel(module, f"{KIND}_{count}", members, group, tiles.sizes)
            kernel.attributes[KERNEL] = ir.StringAttr.get(KIND)
            kernel.attributes[SCHEDULE] = ir.DictAttr.get(
                {"parallel": ir.BoolAttr.get(tiles.parallel)}
            )
            move_behind(call, [ops[m] for m in group.members])
            count += 1
        erase_unused(block)


def _own_starts(block: ir.Block) -> None:
    """Every reduction gets a fill of its own to start from."""
    for view in list(block.operations):
        generic = read_generic(view.operation)
        if generic is None or not generic.reductions:
            continue
        first = len(generic.op.operands) - len(generic.inits)
        for place, init in enumerate(generic.inits):
            if (scalar := _start(init)) is not None:
                with before(generic.op):
                    generic.op.operands[first + place] = filled(shape_of(init), scalar)
    erase_unused(block)


def _start(init: ir.Value) -> ir.Value | None:
    """The scalar that a tensor which starts a reduction is full of."""
    made_by = definition(init)
    generic = read_generic(made_by) if made_by is not None else None
    if generic is None or generic.inputs:
        return fill_scalar(init)
    (only, *more) = made_by.regions[0].blocks[0].operations
    return None if more else only.operation.operands[0]


def _computing(op: ir.Operation) -> Generic | None:
    """A generic that a loop over tiles can hold."""
    generic = read_generic(op)
    if generic is None or 0 in generic.extents:
        return None
    if generic.reductions:
        return generic if all(fill_scalar(init) is not None for init in generic.inits) else None
    return None if any(generic.reads_init) else generic


def _computation(generic: Generic) -> Computation:
    reads = tuple(
        _use(value, access)
        for value, access in zip(generic.inputs, generic.accesses, strict=True)
        if isinstance(value.type, ir.RankedTensorType)
    )
    writes = tuple(map(_use, generic.op.results, generic.output_accesses))
    return Computation(generic.extents, generic.reductions, reads, writes)


def _use(value: ir.Value, access: tuple[int | None, ...]) -> Use:
    element = ir.RankedTensorType(value.type).element_type
    return Use(value, access, shape_of(value), max(1, element.width // 8))


def _before(ops: list[ir.Operation]) -> list[frozenset[int]]:
    """Positions of all operations that each one depends on."""
    position = {op: index for index, op in enumerate(ops)}
    found: list[frozenset[int]] = []
    for op in ops:
        direct = {position[made] for v in used_values(op) if (made := definition(v)) in position}
        found.append(frozenset(direct).union(*(found[p] for p in direct)))
    return found


def _work(generic: Generic) -> int:
    work = 0
    for view in generic.op.regions[0].blocks[0].operations:
        name = view.operation.name
        if name.startswith("math.") and name not in _CHEAP_MATH:
            work += _FUNCTION_WORK
        else:
            work += _DIVISION_WORK if "div" in name or "rem" in name else 1
    count = 1
    for extent in generic.extents:
        count *= extent
    return work * count
