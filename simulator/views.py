"""Views of buffers: each takes an op and gives a function of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlir_npu.dialect.attributes import space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import integers
from mlir_npu.simulator.buffers import Buffer, check_type
from mlir_npu.simulator.errors import SimulationError, UnknownType

DYNAMIC = ir.ShapedType.get_dynamic_size()
DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


def cast_function(op: ir.Operation) -> Callable[..., Buffer]:
    space = space_of(op.results[0].type)
    return lambda source: source if source.space == space else replace(source, space=space)


def view_function(op: ir.Operation) -> Callable[..., Buffer]:
    result = op.results[0]
    check_type(result.type)

    def view(source: Buffer, shift: int) -> Buffer:
        if shift < 0:
            raise SimulationError(op, f"starts at byte {shift}, before {source}")
        made = Buffer.whole(source.memory, result.type, source.offset + shift, result)
        if made.high > source.high:
            end = made.high - source.low
            raise SimulationError(op, f"ends at byte {end} of {source.bytes} of {source}")
        return made

    return view


def beginning_function(op: ir.Operation) -> Callable[..., Buffer]:
    """Of a reinterpret_cast to the first bytes of a block, which is the only kind that there is."""
    if len(op.operands) > 1 or list(integers(op, "static_offsets")) != [0]:
        raise SimulationError(op, "only the beginning of a buffer can be taken so")
    view = view_function(op)
    return lambda source: view(source, 0)


def subview_function(op: ir.Operation) -> Callable[..., Buffer]:
    parts = [integers(op, f"static_{name}") for name in ("offsets", "sizes", "strides")]
    type_ = ir.MemRefType(op.results[0].type)
    kept = _kept_dims(op, parts[1], type_)

    def subview(source: Buffer, *dynamic: int) -> Buffer:
        values = iter(dynamic)
        offsets, sizes, steps = ([next(values) if v == DYNAMIC else v for v in p] for p in parts)
        try:
            box = source.box(offsets, sizes, steps)
        except ValueError as error:
            raise SimulationError(op, f"{error} of {source}") from None
        return box if kept is None else box.permuted(kept)

    return subview


def transpose_function(op: ir.Operation) -> Callable[..., Buffer]:
    order = [e.position for e in ir.AffineMapAttr(op.attributes["permutation"]).value.results]
    return lambda source: source.permuted(order)


def _kept_dims(op: ir.Operation, sizes: Sequence[int], type_: ir.MemRefType) -> list[int] | None:
    """Dimensions of the source that the result has; None if it has all."""
    if type_.rank == len(sizes):
        return None
    strides, _ = type_.get_strides_and_offset()
    source_strides, _ = ir.MemRefType(op.operands[0].type).get_strides_and_offset()
    steps = integers(op, "static_strides")
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        position = len(kept)
        fits = position < type_.rank and size == type_.shape[position]
        if fits and source_strides[dim] * steps[dim] == strides[position]:
            kept.append(dim)
        elif size != 1:
            raise SimulationError(op, f"dimension {dim} of extent {size} is not in {type_}")
    if len(kept) != type_.rank:
        raise SimulationError(op, f"drops other dimensions than those of extent 1: {type_}")
    return kept


def reshape_function(op: ir.Operation) -> Callable[..., Buffer]:
    type_ = ir.MemRefType(op.results[0].type)
    strides, _ = type_.get_strides_and_offset()
    if not type_.has_static_shape or DYNAMIC_STRIDE in strides:
        raise UnknownType(f"{type_} has extents or strides that are not constant")

    def reshape(source: Buffer) -> Buffer:
        item = source.dtype.itemsize
        return source.reshaped(type_.shape, [stride * item for stride in strides])

    return reshape
