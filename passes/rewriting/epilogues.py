"""Which operation an elementwise generic can be the epilogue of, and how it takes on its shape."""

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.rewriting.elementwise import is_settled, read_elementwise, rebuilt, reshaped
from mlir_npu.passes.rewriting.generics import Generic
from mlir_npu.passes.rewriting.values import (
    before,
    definition,
    erase_if_unused,
    is_static,
    replace,
    shape_of,
    users,
)
from mlir_npu.passes.rewriting.views import VIEWS, viewed

# Linalg operations that only move or make elements: nothing is computed that an epilogue could end.
_MOVES = frozenset({"linalg.fill", "linalg.transpose", "linalg.broadcast", "linalg.copy"})


@dataclass(frozen=True)
class Producer:
    """An operation whose one result reaches an elementwise generic, perhaps through views.

    Nothing else uses the result or the views.
    """

    op: ir.Operation
    shape: tuple[int, ...]

    @property
    def is_elementwise(self) -> bool:
        return read_elementwise(self.op) is not None


def is_compute(op: ir.Operation | None) -> bool:
    """Whether `op` is a linalg operation with one tensor result that an epilogue may follow."""
    return (
        op is not None
        and op.name.startswith("linalg.")
        and op.name not in _MOVES
        and len(op.results) == 1
        and is_static(op.results[0])
    )


def producer_of(value: ir.Value, user: ir.Operation) -> Producer | None:
    """The computation that ends in `value`, if `user` is all that it is for."""
    while users(value) == [user]:
        op = definition(value)
        if is_compute(op):
            return Producer(op, shape_of(value))
        if op is None or op.name not in VIEWS:
            return None
        value, user = op.operands[0], op
    return None


def followed_producer(generic: Generic) -> Producer | None:
    """Of the producers of whole operands, the last in program order."""
    found = None
    for value, access in zip(generic.inputs, generic.accesses, strict=True):
        if not isinstance(value.type, ir.ShapedType) or not generic.is_whole(access):
            continue
        producer = producer_of(value, generic.op)
        if producer is None:
            continue
        if found is None or found.op.is_before_in_block(producer.op):
            found = producer
    return found


def settle(op: ir.Operation) -> ir.Operation:
    """The elementwise generic `op` with operands in normal form; any other operation as it is."""
    generic = read_elementwise(op)
    if generic is None or is_settled(generic):
        return op
    with before(op):
        new = rebuilt(generic, tuple(range(generic.loops)))
    replace(op, list(new.results))
    return new


def follow_producer(op: ir.Operation) -> ir.Operation:
    """Give a settled elementwise generic the shape of its producer, and its users a view.

    `generic(view(x))` becomes `view(generic'(x))`, so that nothing is between producer and
    epilogue. Returns the new operation, or `op` where shapes agree or cannot be made to.
    """
    generic = read_elementwise(op)
    producer = followed_producer(generic) if generic is not None else None
    if producer is None or producer.shape == generic.extents:
        return op
    with before(op):
        new = reshaped(generic, producer.shape)
        if new is None:
            return op
        views = [viewed(result, generic.extents) for result in new.results]
    operands = list(op.operands)
    replace(op, views)
    erase_if_unused(*operands)
    return new
