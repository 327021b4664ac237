"""Reductions: generics that accumulate over some of their loops."""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.permutation import inverse, is_channels_first, permuted
from mlir_npu.passes.rewriting.elementwise import settled
from mlir_npu.passes.rewriting.generics import Access, Generic, body_of, build_generic, read_generic
from mlir_npu.passes.rewriting.transposes import marked_transpose, transpose_source, transposed
from mlir_npu.passes.rewriting.values import (
    before,
    fill_scalar,
    filled,
    replace,
    shape_of,
)
from mlir_npu.passes.rewriting.views import viewed


def read_reduction(op: ir.Operation | None) -> Generic | None:
    generic = read_generic(op)
    return generic if generic is not None and generic.reductions else None


def sink_into_reduction(generic: Generic) -> None:
    """Reduce the channels-last image itself, and keep results without dimensions of extent 1."""
    order = _loop_order(generic)
    if order is None and _outputs_settled(generic):
        return
    order = order or tuple(range(generic.loops))
    with before(generic.op):
        results = _rebuilt(generic, order)
        replace(generic.op, results)


def _loop_order(generic: Generic) -> tuple[int, ...] | None:
    """Loops in the order of the first whole input that is a transpose to channels first."""
    for value, access in zip(generic.inputs, generic.accesses, strict=True):
        made_by = transpose_source(value) if generic.is_whole(access) else None
        if made_by is not None and is_channels_first(made_by[1]):
            return inverse(made_by[1])
    return None


def _outputs_settled(generic: Generic) -> bool:
    return all(
        None not in access and list(access) == sorted(access) for access in generic.output_accesses
    )


def _rebuilt(generic: Generic, order: tuple[int, ...]) -> list[ir.Value]:
    """The reduction with loop `order[i]` as loop i; its results in their old shape and order."""
    position = inverse(order)

    def moved(access: Access) -> Access:
        return tuple(None if loop is None else position[loop] for loop in access)

    pairs = [
        settled(v, moved(a), generic.loops) if isinstance(v.type, ir.ShapedType) else (v, a)
        for v, a in zip(generic.inputs, generic.accesses, strict=True)
    ]
    kept = [_kept(moved(access)) for access in generic.output_accesses]
    built = build_generic(
        [value for value, _ in pairs],
        [access for _, access in pairs],
        [_init(init, dims) for init, dims in zip(generic.inits, kept, strict=True)],
        [
            tuple(moved(a)[d] for d in dims)
            for a, dims in zip(generic.output_accesses, kept, strict=True)
        ],
        frozenset(position[loop] for loop in generic.reductions),
        generic.loops,
        body_of(generic.op),
    )
    outputs = zip(built.results, generic.op.results, kept, strict=True)
    return [_restored(new, shape_of(old), dims) for new, old, dims in outputs]


def _kept(access: Access) -> list[int]:
    """Dimensions of a result that loops index, in loop order."""
    return sorted((d for d, loop in enumerate(access) if loop is not None), key=lambda d: access[d])


def _init(init: ir.Value, kept: list[int]) -> ir.Value:
    shape, scalar = [shape_of(init)[d] for d in kept], fill_scalar(init)
    if scalar is not None:
        return filled(shape, scalar)
    dropped = [d for d in range(len(shape_of(init))) if d not in kept]
    return viewed(transposed(init, [*kept, *dropped]), shape)


def _restored(value: ir.Value, shape: tuple[int, ...], kept: list[int]) -> ir.Value:
    """`value`, whose dimensions are `kept` of `shape`, in that shape."""
    dropped = [d for d in range(len(shape)) if d not in kept]
    moved = [*kept, *dropped]
    whole = viewed(value, permuted(shape, moved))
    return whole if moved == sorted(moved) else marked_transpose(whole, inverse(moved))
