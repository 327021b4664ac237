"""Small builders that keep emitted IR short: folded offsets, shared constants, loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from mlir_npu.dialect.bindings import arith, ir, scf


@dataclass
class _Pool:
    """Constants that were emitted before `anchor`, in front of all code that may use them."""

    anchor: ir.Operation
    values: dict[Hashable, ir.Value] = field(default_factory=dict)


# Added in front of a division, so that it never sees a negative number.
_LIFT = 1 << 32

_POOL: ContextVar[_Pool | None] = ContextVar("constant pool", default=None)


@contextmanager
def shared_constants() -> Iterator[None]:
    """Emit every constant once, at the insertion point where the context is entered."""
    anchor = arith.ConstantOp(ir.IndexType.get(), 0)
    token = _POOL.set(_Pool(anchor.operation, {("index", 0): anchor.result}))
    try:
        yield
    finally:
        _POOL.reset(token)


def constant(key: Hashable, make: Callable[[], ir.Value]) -> ir.Value:
    """The constant that `make` builds; `key` tells constants of a pool apart."""
    pool = _POOL.get()
    if pool is None:
        return make()
    if key not in pool.values:
        with ir.InsertionPoint(pool.anchor):
            pool.values[key] = make()
    return pool.values[key]


def index_constant(value: int) -> ir.Value:
    return constant(("index", value), lambda: arith.ConstantOp(ir.IndexType.get(), value).result)


@dataclass(frozen=True)
class Offset:
    """A count of elements or iterations: an SSA part (None is zero) plus a constant."""

    value: ir.Value | None = None
    constant: int = 0

    def __add__(self, other: Offset | int) -> Offset:
        if isinstance(other, int):
            return Offset(self.value, self.constant + other)
        constant = self.constant + other.constant
        if self.value is None or other.value is None:
            return Offset(self.value if other.value is None else other.value, constant)
        return Offset(arith.AddIOp(self.value, other.value).result, constant)

    def times(self, factor: int) -> Offset:
        if factor == 0 or self.value is None:
            return Offset(None, self.constant * factor)
        if factor == 1:
            return self
        scaled = arith.MulIOp(self.value, index_constant(factor)).result
        return Offset(scaled, self.constant * factor)

    def materialise(self) -> ir.Value:
        """The offset as one index value."""
        if self.value is None:
            return index_constant(self.constant)
        if self.constant == 0:
            return self.value
        return arith.AddIOp(self.value, index_constant(self.constant)).result


def offset_of(index: ir.Value) -> Offset:
    """An index value as an offset, which is constant if the value is."""
    owner = index.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return Offset(index)
    return Offset(None, ir.IntegerAttr(owner.attributes["value"]).value)


def minimum(left: Offset | int, right: Offset | int) -> Offset:
    """The lesser of two signed offsets."""
    return _select(left, right, min, arith.MinSIOp)


def maximum(left: Offset | int, right: Offset | int) -> Offset:
    """The greater of two signed offsets."""
    return _select(left, right, max, arith.MaxSIOp)


def floor_div(offset: Offset, divisor: int) -> Offset:
    """The greatest offset whose product with `divisor` is at most `offset`."""
    if divisor == 1:
        return offset
    if offset.value is None:
        return Offset(None, offset.constant // divisor)
    lifted = (offset + divisor * _LIFT).materialise()
    return Offset(arith.DivUIOp(lifted, index_constant(divisor)).result, -_LIFT)


def ceil_div(offset: Offset, divisor: int) -> Offset:
    """The least offset whose product with `divisor` is at least `offset`."""
    return floor_div(offset + (divisor - 1), divisor)


def loop(
    lower: Offset | int,
    upper: Offset | int,
    step: int,
    body: Callable[[Offset, list[ir.Value]], Sequence[ir.Value]],
    carried: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """An `scf.for` from `lower` to `upper`, or its body alone when it is known to run once.

    `body(counter, values)` emits an iteration and returns the next carried values.
    """
    lower, upper = _as_offset(lower), _as_offset(upper)
    if lower.value is None and upper.value is None:
        trips = -(-(upper.constant - lower.constant) // step)
        if trips <= 0:
            return list(carried)
        if trips == 1:
            return list(body(lower, list(carried)))
    for_op = scf.ForOp(
        lower.materialise(), upper.materialise(), index_constant(step), list(carried)
    )
    with ir.InsertionPoint(for_op.body):
        results = body(Offset(for_op.induction_variable), list(for_op.inner_iter_args))
        scf.YieldOp(list(results))
    return list(for_op.results)


def _as_offset(bound: Offset | int) -> Offset:
    return Offset(None, bound) if isinstance(bound, int) else bound


def _select(
    left: Offset | int,
    right: Offset | int,
    fold: Callable[[int, int], int],
    operation: Callable[[ir.Value, ir.Value], ir.OpView],
) -> Offset:
    left, right = _as_offset(left), _as_offset(right)
    if left.value is None and right.value is None:
        return Offset(None, fold(left.constant, right.constant))
    return Offset(operation(left.materialise(), right.materialise()).result)
