"""Ops whose inputs have different types.

IRDL gives all operands of a variadic field one type. The inputs of such ops are therefore declared
to IRDL as MAX_INPUTS optional operands, each with a type of its own, and the text carries one
operandSegmentSizes entry for each. In Python `inputs` is one list; builders take a list and write
the entries.
"""

from __future__ import annotations

from dataclasses import replace

from mlir_npu.dialect.base import SEGMENTS, TileOp, error, verify_form
from mlir_npu.dialect.bindings import ext, ir

MAX_INPUTS = 16


class SlottedOp(TileOp):
    """Base of ops with a field `inputs: Sequence[Operand[Any]]` whose types may differ."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "name" not in kwargs:
            return
        build = cls.__init__

        def __init__(self, *args, **kwargs):
            build(self, *args, **kwargs)
            sizes = _segments(self)
            self.attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get(sizes, self.operation.context)

        __init__.__signature__ = build.__signature__
        cls.__init__ = __init__

    @classmethod
    def _emit_operation(cls):
        declared = cls._fields
        cls._fields = [slot for field in declared for slot in _slots(field)]
        try:
            super()._emit_operation()
        finally:
            cls._fields = declared

    def verify_invariants(self) -> bool:
        return verify_form(self) and _verify_segments(self) and self.verify_op()


def _slots(field) -> list:
    if field.name != "inputs":
        return [field]
    optional = ext.Variadicity.optional
    return [replace(field, name=f"inputs_{i}", variadicity=optional) for i in range(MAX_INPUTS)]


def _segments(op: SlottedOp) -> list[int]:
    before = next(i for i, field in enumerate(op._OPERANDS) if field.name == "inputs")
    after = len(op._OPERANDS) - before - 1
    count = len(op.operands) - before - after
    return [1] * (before + count) + [0] * (MAX_INPUTS - count) + [1] * after


def _verify_segments(op: SlottedOp) -> bool:
    if len(op.inputs) > MAX_INPUTS:
        return error(op, f"takes at most {MAX_INPUTS} inputs, got {len(op.inputs)}")
    expected = f"array<i32: {', '.join(map(str, _segments(op)))}>"
    actual = op.attributes.get(SEGMENTS, "none")
    if str(actual) == expected:
        return True
    return error(op, f"with {len(op.inputs)} inputs needs {SEGMENTS} = {expected}, got {actual}")
