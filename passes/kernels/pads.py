"""Recognise a bufferised pad: a buffer filled with a constant, then a copy into its interior.

A result may take more copies after the first, which pads; a temporary takes exactly one.
"""

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import constant_of, definition, integers, terminator, users


@dataclass(frozen=True)
class Pad:
    """`source` stands in `buffer` at `low`, the rest of the buffer is `value`."""

    buffer: ir.Value
    source: ir.Value
    low: tuple[int, ...]
    value: ir.Attribute
    fill: ir.Operation
    copy: ir.Operation


def filled_value(fill: ir.Operation) -> ir.Attribute | None:
    """The constant that a `linalg.fill` or a `linalg.map` without inputs writes, or None."""
    if fill.name == "linalg.fill":
        return constant_of(fill.operands[0])
    if fill.name == "linalg.map" and len(fill.operands) == 1:
        return constant_of(terminator(fill.regions[0].blocks[0]).operands[0])
    return None


def pad_of(fill: ir.Operation) -> Pad | None:
    """The pad that starts with `fill`, or None."""
    value = filled_value(fill)
    if value is None:
        return None
    buffer = list(fill.operands)[-1]
    copies = [found for view in users(buffer) if (found := _copy_into(view, buffer)) is not None]
    if not copies or any(copy.block != fill.block for copy in copies):
        return None
    if definition(buffer) is not None and len(copies) > 1:
        return None
    copy = next(op.operation for op in fill.block.operations if op.operation in copies)
    view = definition(copy.operands[1])
    return Pad(buffer, copy.operands[0], integers(view, "static_offsets"), value, fill, copy)


def is_pad_fill(op: ir.Operation) -> bool:
    return op.name in ("linalg.fill", "linalg.map") and pad_of(op) is not None


def _copy_into(view: ir.Operation, buffer: ir.Value) -> ir.Operation | None:
    """The copy whose target is the static, unit-stride subview `view` of `buffer`."""
    if view.name != "memref.subview" or view.operands[0] != buffer or len(view.operands) > 1:
        return None
    if set(integers(view, "static_strides")) != {1}:
        return None
    if len(view.results[0].type.shape) != len(buffer.type.shape):
        return None
    for user in users(view.results[0]):
        if user.name == "memref.copy" and user.operands[1] == view.results[0]:
            return user
    return None
