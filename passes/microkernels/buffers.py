"""Memrefs as flat memory with element strides, and what an indexing map makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.passes.microkernels.emit import Offset, index_constant

# How the bindings spell an extent or stride that is not known at compile time.
DYNAMIC_SIZE = ir.ShapedType.get_dynamic_size()
DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


class NotLinearError(ValueError):
    """An indexing map or layout that no set of constant strides describes."""


@dataclass(frozen=True)
class Operand:
    """A buffer seen from a loop nest: flat memory, a start, and a stride for every loop."""

    flat: ir.Value
    start: int
    strides: tuple[int, ...]
    element: ir.Type


def static_strides(type_: ir.MemRefType) -> list[int]:
    strides, _ = type_.get_strides_and_offset()
    if DYNAMIC_STRIDE in strides:
        raise NotLinearError(f"strides of {type_} are not known at compile time")
    return list(strides)


def is_dense(buffer: ir.Value) -> bool:
    """Whether all of `buffer`, of static shape, is one run of memory in row-major order."""
    type_, expected = ir.MemRefType(buffer.type), 1
    strides, _ = type_.get_strides_and_offset()
    if DYNAMIC_SIZE in type_.shape:
        return False
    for extent, stride in zip(reversed(type_.shape), reversed(strides), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def extent_along(buffer: ir.Value, dim: int) -> Offset:
    size = ir.MemRefType(buffer.type).shape[dim]
    if size != DYNAMIC_SIZE:
        return Offset(None, size)
    return Offset(memref.DimOp(buffer, index_constant(dim)).result)


def flatten(buffer: ir.Value, shift: Offset | None = None) -> ir.Value:
    """A one-dimensional view of the memory of `buffer`, from `shift` elements on."""
    type_ = ir.MemRefType(buffer.type)
    index, space = ir.IndexType.get(), type_.memory_space
    rank = type_.rank
    base_type = ir.MemRefType.get([], type_.element_type, memory_space=space)
    metadata = memref.ExtractStridedMetadataOp(
        buffer, results=[base_type, *[index] * (1 + 2 * rank)]
    )
    first = Offset(metadata.results[1]) + (shift or Offset())
    extent = _span(type_, metadata.results)
    sizes = [extent.value] if extent.value is not None else []
    static_size = extent.constant if extent.value is None else DYNAMIC_SIZE
    layout = ir.StridedLayoutAttr.get(DYNAMIC_STRIDE, [1])
    flat_type = ir.MemRefType.get([static_size], type_.element_type, layout, space)
    return memref.ReinterpretCastOp(
        flat_type,
        metadata.results[0],
        [first.materialise()],
        sizes,
        [],
        [DYNAMIC_STRIDE],
        [static_size],
        [1],
    ).result


def operand_of(
    buffer: ir.Value, strides: Sequence[int], start: int = 0, shift: Offset | None = None
) -> Operand:
    """`buffer` walked by loops whose element strides the caller already knows.

    The walk begins `start + shift` elements after the first; `shift` may be a run-time value.
    """
    element = ir.MemRefType(buffer.type).element_type
    return Operand(flatten(buffer, shift), start, tuple(strides), element)


def mapped_operand(buffer: ir.Value, map_: ir.AffineMap) -> Operand:
    """`buffer` walked by the dimensions of `map_`. Raises NotLinearError if that is not linear."""
    strides = [0] * map_.n_dims
    start = 0
    for expression, step in zip(
        map_.results, static_strides(ir.MemRefType(buffer.type)), strict=True
    ):
        coefficients, constant = linear_terms(expression, map_.n_dims)
        start += constant * step
        strides = [total + c * step for total, c in zip(strides, coefficients, strict=True)]
    return operand_of(buffer, strides, start)


def linear_terms(expression: ir.AffineExpr, dims: int) -> tuple[list[int], int]:
    """Coefficient of every dimension and the constant of a linear expression."""
    if isinstance(expression, ir.AffineConstantExpr):
        return [0] * dims, expression.value
    if isinstance(expression, ir.AffineDimExpr):
        return [int(i == expression.position) for i in range(dims)], 0
    if isinstance(expression, ir.AffineAddExpr):
        left, left_constant = linear_terms(expression.lhs, dims)
        right, right_constant = linear_terms(expression.rhs, dims)
        return [a + b for a, b in zip(left, right, strict=True)], left_constant + right_constant
    if isinstance(expression, ir.AffineMulExpr):
        return _product(expression, dims)
    raise NotLinearError(f"indexing expression {expression} is not linear")


def _product(expression: ir.AffineMulExpr, dims: int) -> tuple[list[int], int]:
    left, left_constant = linear_terms(expression.lhs, dims)
    right, right_constant = linear_terms(expression.rhs, dims)
    if any(left) and any(right):
        raise NotLinearError(f"indexing expression {expression} is not linear")
    if any(right):
        left, left_constant, right_constant = right, right_constant, left_constant
    return [c * right_constant for c in left], left_constant * right_constant


def _span(type_: ir.MemRefType, metadata: Sequence[ir.Value]) -> Offset:
    """Elements that a buffer stretches over, at most: its widest stride times that extent."""
    if type_.rank == 0:
        return Offset(None, 1)
    strides = static_strides(type_)
    widest = max(range(type_.rank), key=lambda dim: strides[dim])
    extent, stride = type_.shape[widest], strides[widest]
    if extent != DYNAMIC_SIZE:
        return Offset(None, extent * stride)
    return Offset(metadata[2 + widest]).times(stride)
