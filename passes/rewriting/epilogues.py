"""Which operation an elementwise generic can be the epilogue of, and how it takes on its shape."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import definition, users
from mlir_npu.passes.rewriting.elementwise import is_settled, read_elementwise, rebuilt, reshaped
from mlir_npu.passes.rewriting.generics import Generic
from mlir_npu.passes.rewriting.loops import iterations
from mlir_npu.passes.rewriting.values import before, erase_if_unused, is_static, replace, shape_of
from mlir_npu.passes.rewriting.views import VIEWS, viewed

# Linalg operations that only move or make elements: nothing is computed that an epilogue could end.
_MOVES = frozenset({"linalg.fill", "linalg.transpose", "linalg.broadcast", "linalg.copy"})


@dataclass(frozen=True)
class Producer:
    """An operation whose one result reaches an elementwise generic, perhaps through views.

    Nothing else uses the result or the views. `shape` is that of the result. `root`: the operation
    whose kernel the producer is in, itself or what it is the epilogue of; None if it has none.
    """

    op: ir.Operation
    shape: tuple[int, ...]
    root: ir.Operation | None

    def outranks(self, other: "Producer") -> bool:
        """Whether a chain that follows both ends the kernel of this one."""
        if self.root is not None and other.root is not None:
            return outranks(self.root, other.root)
        if self.root is None and other.root is None:
            return other.op.is_before_in_block(self.op)
        return self.root is not None


def outranks(root: ir.Operation, other: ir.Operation) -> bool:
    """Whether an epilogue that reads both belongs to `root`: the one with more work, or the later.

    The operands of the epilogue cost least beside the most work. It also makes kernels alike: the
    last convolution of a residual block is the same with and without a projection beside it.
    """
    own, others = iterations(root), iterations(other)
    return own > others or (own == others and other.is_before_in_block(root))


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
            return Producer(op, shape_of(value), _root_of(op))
        if op is None or op.name not in VIEWS:
            return None
        value, user = op.operands[0], op
    return None


def _root_of(op: ir.Operation) -> ir.Operation | None:
    generic = read_elementwise(op)
    if generic is None:
        return op
    followed = followed_producer(generic)
    return followed.root if followed is not None else None


def followed_producer(generic: Generic, besides: Sequence[ir.Value] = ()) -> Producer | None:
    """The producer of a whole operand, not of `besides`, whose kernel `generic` ends."""
    found = None
    for value, access in zip(generic.inputs, generic.accesses, strict=True):
        if not isinstance(value.type, ir.ShapedType) or not generic.is_whole(access):
            continue
        producer = producer_of(value, generic.op) if value not in besides else None
        if producer is not None and (found is None or producer.outranks(found)):
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
