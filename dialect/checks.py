"""What verifiers share: a check emits one located error with the offending numbers, returns False.

MLIR requires a real bool from a verifier and exceptions must not cross it, so checks never raise.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.attributes import SPACES, space_of
from mlir_npu.dialect.base import error
from mlir_npu.dialect.bindings import ir

WIDER_ACCUMULATOR = {"f16": ("f32",), "bf16": ("f32",), "i8": ("i32",)}
DYNAMIC = ir.ShapedType.get_dynamic_size()


def check_memref(op: ir.OpView, value: ir.Value, name: str, rank: int | None = None) -> bool:
    """`value` is a strided memref of numbers in a known memory, of the given rank."""
    if not isinstance(value.type, ir.MemRefType):
        return error(op, f"{name} must be a memref, got {value.type}")
    element = ir.MemRefType(value.type).element_type
    if not isinstance(element, ir.IntegerType | ir.FloatType):
        return error(op, f"{name} must hold integers or floats, got {element}")
    if not _is_strided(ir.MemRefType(value.type)):
        return error(op, f"{name} must have a strided layout, got {value.type}")
    if space_of(value.type) not in SPACES:
        memories = ", ".join(SPACES)
        return error(
            op, f"{name} must be in one of the memories {memories}, got {space_of(value.type)}"
        )
    actual = ir.MemRefType(value.type).rank
    if rank is not None and actual != rank:
        return error(op, f"{name} must have rank {rank}, got rank {actual}: {value.type}")
    return True


def _is_strided(memref_type: ir.MemRefType) -> bool:
    try:
        memref_type.get_strides_and_offset()
    except RuntimeError:  # how the bindings say no
        return False
    return True


def check_space(op: ir.OpView, value: ir.Value, name: str, *allowed: str) -> bool:
    """`value` lives in one of the allowed memories."""
    space = space_of(value.type)
    if space in allowed:
        return True
    return error(op, f"{name} must be in {' or '.join(allowed)}, got {space}")


def check_same_element_type(
    op: ir.OpView, values: Sequence[ir.Value], names: Sequence[str]
) -> bool:
    """All memrefs hold the same element type."""
    first = ir.MemRefType(values[0].type).element_type
    for value, name in zip(values[1:], names[1:]):
        actual = ir.MemRefType(value.type).element_type
        if actual != first:
            return error(op, f"{name} has element type {actual}, but {names[0]} has {first}")
    return True


def check_accumulator_type(op: ir.OpView, operand: ir.Value, accumulator: ir.Value) -> bool:
    """The accumulator holds the element type of the operands, or the wider one that sums need."""
    narrow = ir.MemRefType(operand.type).element_type
    wide = ir.MemRefType(accumulator.type).element_type
    allowed = [str(narrow), *WIDER_ACCUMULATOR.get(str(narrow), ())]
    if str(wide) in allowed:
        return True
    return error(
        op, f"accumulator of {narrow} products must hold {' or '.join(allowed)}, got {wide}"
    )


def check_scalar_type(op: ir.OpView, name: str, value: ir.Attribute, buffer: ir.Value) -> bool:
    """A constant has the element type of the buffer that it is written to."""
    element = ir.MemRefType(buffer.type).element_type
    if getattr(value, "type", None) == element:
        return True
    return error(op, f"'{name}' must be of type {element}, got {value}")


def check_extent(op: ir.OpView, what: str, actual: int, expected: int) -> bool:
    """Two extents agree, unless one is dynamic."""
    if actual == expected or DYNAMIC in (actual, expected):
        return True
    return error(op, f"{what}: {actual} vs {expected}")


def check_positive(op: ir.OpView, name: str, values: Sequence[int], count: int) -> bool:
    """An array attribute has `count` entries, all at least 1."""
    if len(values) == count and all(value >= 1 for value in values):
        return True
    return error(op, f"'{name}' must be {count} positive integers, got {list(values)}")


def needed_extent(out: int, window: int, stride: int, dilation: int) -> int:
    """Input extent that `out` outputs read: (out - 1) * stride + (window - 1) * dilation + 1."""
    return (out - 1) * stride + (window - 1) * dilation + 1


def check_halo(
    op: ir.OpView,
    input_extents: Sequence[int],
    output_extents: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> bool:
    """The input tile holds every row and column that the output tile reads."""
    for axis, extents in zip("yx", zip(input_extents, output_extents, window, strides, dilations)):
        have, out, taps, stride, dilation = extents
        if DYNAMIC in (have, out, taps):
            continue
        need = needed_extent(out, taps, stride, dilation)
        if have < need:
            return error(
                op,
                f"input extent along {axis} is {have}, but {out} outputs of a window of {taps} "
                f"(stride {stride}, dilation {dilation}) read {need}",
            )
    return True
