"""During which steps of a function a buffer is live. Steps number operations, outer before inner."""
from mlir_npu.dialect.attributes import TokenType
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import nested, users


class Steps:
    """The numbering of one function."""

    def __init__(self, function: ir.Operation):
        self._order = nested(function)
        self._step = {op: index for index, op in enumerate(self._order)}

    def life(self, allocation: ir.Operation) -> tuple[int, int]:
        """First and last step of the buffer that `allocation` makes.

        A use inside a loop that the buffer enters from outside keeps it live to the loop's end; a
        move that is under way keeps it live to its wait.
        """
        first = last = self._step[allocation]
        for user in _all_users(allocation.results[0]):
            last = max(last, self._end(self._ancestor(user, allocation.block)))
        return first, last

    def _ancestor(self, op: ir.Operation, block: ir.Block) -> ir.Operation:
        """The operation of `block` that is or contains `op`."""
        while op.block != block:
            op = op.parent.operation
        return op

    def _end(self, op: ir.Operation) -> int:
        inner = nested(op)
        return self._step[inner[-1]] if inner else self._step[op]


def _all_users(value: ir.Value) -> list[ir.Operation]:
    """Users of a buffer, of the views of it, and of the tokens of its moves."""
    found = []
    for user in users(value):
        found.append(user)
        for result in user.results:
            if isinstance(result.type, (ir.MemRefType, TokenType)):
                found += _all_users(result)
    return found
