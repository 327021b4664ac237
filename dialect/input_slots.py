"""Ops with a list of inputs of different types.

IRDL, on which Python-defined dialects rest, binds the type of a variadic operand once, so that all its
values must have one type. Optional operands have no such bond: an op with inputs of different types gets
`MAX_INPUTS` optional slots, which only the text form shows, in its `operandSegmentSizes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from mlir_npu.dialect.bindings import ext, ir

MAX_INPUTS = 8
_SLOTS = tuple(f"input_{number}" for number in range(MAX_INPUTS))

# Annotations for the class body of an op, to be merged with `__annotations__.update(INPUT_SLOTS)` at the
# place where the inputs stand among its operands.
INPUT_SLOTS = {slot: Optional[ext.Operand[Any]] for slot in _SLOTS}


def with_input_list(cls: type) -> type:
    """Class decorator: the slots appear as one `inputs` list, in the builder and as a property.

    The builder raises ValueError for more than MAX_INPUTS inputs.
    """
    position = [name for name in cls.__annotations__].index(_SLOTS[0])
    cls.__init__ = _list_builder(cls.__init__, position, cls.OPERATION_NAME)
    cls.inputs = property(_present_inputs)
    return cls


def _list_builder(build: Callable, position: int, name: str) -> Callable:
    def __init__(self, *args, **keywords):
        inputs = list(args[position])
        if len(inputs) > MAX_INPUTS:
            raise ValueError(f"{name} takes at most {MAX_INPUTS} inputs, got {len(inputs)}")
        padding = [None] * (MAX_INPUTS - len(inputs))
        build(self, *args[:position], *inputs, *padding, *args[position + 1 :], **keywords)

    return __init__


def _present_inputs(op: ir.OpView) -> list[ir.Value]:
    slots = (getattr(op, slot) for slot in _SLOTS)
    return [value for value in slots if value is not None]
