"""The loops around an operation as one sequence of iterations, numbered from zero.

A chain holds the `scf.for` loops that enclose an operation, outermost first, up to the first
operation that is no such loop. Its iterations are numbered in the order in which they run, so that
"the next iteration" is defined across the borders of inner loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir_npu.dialect.attributes import TokenType
from mlir_npu.dialect.bindings import arith, ir, scf
from mlir_npu.dialect.movement import DmaWaitOp
from mlir_npu.passes.kernels.walk import constant_of, terminator


@dataclass(frozen=True)
class Loop:
    """An `scf.for` with constant bounds and at least one iteration."""

    op: ir.Operation
    low: int
    step: int
    trips: int

    @property
    def induction(self) -> ir.Value:
        return self.op.regions[0].blocks[0].arguments[0]


@dataclass(frozen=True)
class LoopChain:
    """Enclosing loops, outermost first; at least one."""

    loops: tuple[Loop, ...]

    @property
    def outermost(self) -> ir.Operation:
        return self.loops[0].op

    @property
    def iterations(self) -> int:
        return prod(loop.trips for loop in self.loops)

    def number(self) -> ir.Value:
        """The number of the running iteration; built at the insertion point, in the body."""
        number = index(0)
        for loop in self.loops:
            done = arith.SubIOp(loop.induction, index(loop.low)).result
            done = arith.DivUIOp(done, index(loop.step)).result
            number = arith.MulIOp(number, index(loop.trips)).result
            number = arith.AddIOp(number, done).result
        return number

    def counters(self, number: ir.Value) -> list[ir.Value]:
        """The induction value of every loop in iteration `number`."""
        counters = []
        for loop in reversed(self.loops):
            done = arith.RemUIOp(number, index(loop.trips)).result
            number = arith.DivUIOp(number, index(loop.trips)).result
            done = arith.MulIOp(done, index(loop.step)).result
            counters.append(arith.AddIOp(done, index(loop.low)).result)
        return counters[::-1]


def chain_of(op: ir.Operation) -> LoopChain | str:
    """The chain around `op`, or why there is none that can be numbered."""
    loops: list[Loop] = []
    parent = op.parent.operation
    while parent.name == "scf.for":
        loop = _read(parent)
        if isinstance(loop, str):
            return loop
        loops.append(loop)
        parent = parent.parent.operation
    if not loops:
        return "stands in no loop"
    return LoopChain(tuple(reversed(loops)))


def _read(op: ir.Operation) -> Loop | str:
    bounds = [constant_of(value) for value in list(op.operands)[:3]]
    if any(bound is None for bound in bounds):
        return "a loop around it has bounds that are not constant"
    low, high, step = (ir.IntegerAttr(bound).value for bound in bounds)
    if any(not isinstance(value.type, TokenType) for value in op.results):
        return "a loop around it carries values"
    if high <= low:
        return "a loop around it does not run"
    return Loop(op, low, step, -(-(high - low) // step))


def carry_tokens(chain: LoopChain, first: Sequence[ir.Value]) -> tuple[LoopChain, list[ir.Value]]:
    """Rebuild the loops with more tokens that every iteration takes from the one before.

    `first` enters the first iteration. Returns the new chain and the tokens as the body of the
    innermost loop receives them; that body has still to yield the next ones, see `yield_tokens`.
    """
    loops, tokens = [], list(first)
    for loop in chain.loops:
        # each loop moves into the rebuilt body of the one around it
        new = _rebuilt(loop.op, tokens)
        loops.append(Loop(new, loop.low, loop.step, loop.trips))
        tokens = list(new.regions[0].blocks[0].arguments)[-len(first) :]
    for outer, inner in zip(loops, loops[1:]):
        _append_yield(outer.op, list(inner.op.results)[-len(first) :])
    return LoopChain(tuple(loops)), tokens


def yield_tokens(chain: LoopChain, tokens: Sequence[ir.Value]) -> None:
    """Hand `tokens` from the innermost body to the next iteration; wait for the last ones."""
    _append_yield(chain.loops[-1].op, tokens)
    outermost = chain.outermost
    after = list(outermost.block.operations)
    following = after[after.index(outermost.opview) + 1]
    with ir.InsertionPoint(following), outermost.location:
        DmaWaitOp(list(outermost.results)[-len(tokens) :])


def _rebuilt(loop: ir.Operation, tokens: Sequence[ir.Value]) -> ir.Operation:
    low, high, step, *carried = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        new = scf.ForOp(low, high, step, [*carried, *tokens])
    body, old = new.body, loop.regions[0].blocks[0]
    for argument, replacement in zip(old.arguments, body.arguments):
        argument.replace_all_uses_with(replacement)
    for child in [op.operation for op in old.operations]:
        body.append(child)
    for result, replacement in zip(loop.results, new.results):
        result.replace_all_uses_with(replacement)
    for name in loop.attributes:
        new.operation.attributes[name] = loop.attributes[name]
    loop.erase()
    return new.operation


def _append_yield(loop: ir.Operation, tokens: Sequence[ir.Value]) -> None:
    old = terminator(loop.regions[0].blocks[0])
    with ir.InsertionPoint(old), old.location:
        scf.YieldOp([*old.operands, *tokens])
    old.erase()


def index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
