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
