"""When a buffer of a function is live, in steps: operations numbered outer before inner."""

from collections.abc import Iterable

from mlir_npu.dialect.attributes import TokenType
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import nested, users

LOOP_BOUNDS = 3  # operands of an scf.for before its initial values
OVERWRITING = ("npu.fill", "npu.eltwise", "npu.drain", "npu.winograd_input")


class Steps:
    """The numbering of one function."""

    def __init__(self, function: ir.Operation):
        self._function = function.operation
        self._order = nested(function)
        self._step = {op: index for index, op in enumerate(self._order)}
        self._ends: dict[ir.Operation, int] = {}

    def life(self, allocation: ir.Operation, later: Iterable[ir.Operation] = ()) -> tuple[int, int]:
        """First and last step of the buffer that `allocation` makes; `later`: it is needed there.

        A use inside a loop that the buffer enters from outside keeps it live to the loop's end; a
        move that is under way keeps it live to its wait. A buffer whose move is waited for outside
        of the loop or branch that makes it lives as long as all of these.
        """
        ops = [allocation, *(op for op, _ in _uses(allocation.results[0])), *later]
        return self._span(ops, [op.block for op in self._chain(allocation)])

    def is_carried_on(self, allocation: ir.Operation) -> bool:
        """Whether a loop hands the buffer of one round, not just its token, to the next round."""
        around = self._chain(allocation)
        return any(
            op.name == "scf.yield"
            and op.parent.operation.name == "scf.for"
            and op.parent.operation in around
            and isinstance(value.type, ir.MemRefType)
            for op, value in _uses(allocation.results[0])
        )

    def use(self, view: ir.Operation) -> tuple[int, int]:
        """First and last step at which the memory behind `view` is used.

        Wherever the view stands, the memory is the same in every round of a loop. When all uses
        lie in one loop, and every round starts by overwriting the memory, it is free outside of
        that span of the loop's steps.
        """
        uses = sorted(_uses(view.results[0]), key=lambda use: self._step[use[0]])
        if not uses:
            return self._step[view], self._step[view]
        users_of_memory = [op for op, _ in uses]
        block = self._chain(view)[-1].block
        around = self._ancestors(users_of_memory, block)
        while len(set(around)) == 1 and self._is_overwritten_first(uses, around[0]):
            block = around[0].regions[0].blocks[0]
            around = self._ancestors(users_of_memory, block)
        return self._span(users_of_memory, [block])

    def _span(self, ops: list[ir.Operation], blocks: list[ir.Block]) -> tuple[int, int]:
        """From the first to the last of `ops`, as they stand in the first block that has all."""
        for block in blocks:
            if len(spans := self._ancestors(ops, block)) == len(ops):
                return min(self._step[op] for op in spans), max(self._end(op) for op in spans)
        return 0, len(self._order) - 1  # blocks that jump to each other have no order

    def _ancestors(self, ops: list[ir.Operation], block: ir.Block) -> list[ir.Operation]:
        """The operations of `block` that are or contain `ops`; fewer if some are elsewhere."""
        return [outer for op in ops for outer in self._chain(op) if outer.block == block]

    def _chain(self, op: ir.Operation) -> list[ir.Operation]:
        """`op` and the operations around it up to the function, innermost first."""
        chain = [op]
        while (parent := chain[-1].parent.operation) != self._function:
            chain.append(parent)
        return chain

    def _is_overwritten_first(self, uses, op: ir.Operation) -> bool:
        if op.name not in ("scf.for", "scf.forall"):
            return False
        touching = [
            (user, value)
            for user, value in uses
            if isinstance(value.type, ir.MemRefType) and not _is_view(user)
        ]
        return bool(touching) and overwrites(*touching[0])

    def _end(self, op: ir.Operation) -> int:
        if op not in self._ends:
            inner = nested(op)
            self._ends[op] = self._step[inner[-1]] if inner else self._step[op]
        return self._ends[op]


def _uses(value: ir.Value) -> list[tuple[ir.Operation, ir.Value]]:
    """Users of a buffer, of the views of it and of the tokens of its moves, with what they use."""
    found, seen, pending = [], {value}, [value]
    while pending:
        used = pending.pop()
        for user in users(used):
            found.append((user, used))
            new = [v for v in _continuations(user, used) if v not in seen]
            seen.update(new)
            pending += new
    return found


def _continuations(user: ir.Operation, value: ir.Value) -> list[ir.Value]:
    """The values through which the use of `value` by `user` goes on: views of it, its tokens."""
    if user.name == "scf.yield":
        parent = user.parent.operation
        return [v for i in _places(user, value) for v in _carried(parent, i)]
    if user.name == "scf.for":
        return [v for i in _places(user, value) for v in _carried(user, i - LOOP_BOUNDS)]
    return [r for r in user.results if isinstance(r.type, (ir.MemRefType, TokenType))]


def _places(op: ir.Operation, value: ir.Value) -> list[int]:
    return [i for i, operand in enumerate(op.operands) if operand == value]


def _carried(op: ir.Operation, place: int) -> list[ir.Value]:
    """A result of an `scf.if` or `scf.for`, and the argument of the loop's body with it."""
    if op.name != "scf.for":
        return [op.results[place]]
    return [op.results[place], op.regions[0].blocks[0].arguments[1 + place]]


def _is_view(op: ir.Operation) -> bool:
    return bool(op.results) and isinstance(op.results[0].type, ir.MemRefType)


def overwrites(op: ir.Operation, value: ir.Value) -> bool:
    """Whether `op` writes `value` without reading it."""
    if op.name == "npu.dma_start":
        return op.operands[1] == value and op.operands[0] != value
    if op.name in OVERWRITING:
        *inputs, output = op.operands
        return output == value and value not in inputs
    return False
