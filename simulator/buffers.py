"""Memories and the buffers in them. A buffer is a strided box of bytes; data is there only if the
memory has any, so that timing and functional runs share the arithmetic of views."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from mlir_npu.dialect.attributes import SPACES, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.simulator.errors import UnknownType

DTYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
POISON_BYTE = 0xFF  # NaN as any float


def dtype_of(element: ir.Type) -> np.dtype:
    if str(element) not in DTYPES:
        raise UnknownType(f"element type {element} is not one of {', '.join(DTYPES)}")
    return np.dtype(DTYPES[str(element)])


def check_type(type_: ir.Type) -> None:
    """Raises UnknownType unless there can be a whole buffer of this type."""
    if not isinstance(type_, ir.MemRefType):
        raise UnknownType(f"{type_} is no buffer of known rank")
    if not type_.has_static_shape:
        raise UnknownType(f"{type_} has extents that are not constant")
    item = dtype_of(type_.element_type).itemsize
    strides, offset = type_.get_strides_and_offset()
    if offset or tuple(item * stride for stride in strides) != row_major(tuple(type_.shape), item):
        raise UnknownType(f"{type_} is not row-major")
    if space_of(type_) not in SPACES:
        raise UnknownType(f"{type_} is in '{space_of(type_)}', not in {', '.join(SPACES)}")


@dataclass(eq=False)
class Memory:
    """Bytes that do not overlap with those of another memory.

    data: uint8, None in timing runs; moves_in: for each byte, how often a move wrote the element
    that begins there, None unless somebody counts; constant: why nothing may write it, else empty.
    """

    name: str
    bytes: int
    data: np.ndarray | None = None
    moves_in: np.ndarray | None = None
    constant: str = ""

    @classmethod
    def poisoned(cls, name: str, size: int, counted: bool = False) -> Memory:
        counts = np.zeros(size, np.int32) if counted else None
        return cls(name, size, np.full(size, POISON_BYTE, np.uint8), counts)

    @classmethod
    def holding(cls, name: str, array: np.ndarray) -> Memory:
        """A copy of the array's elements, row-major."""
        data = np.frombuffer(array.tobytes(), np.uint8).copy()
        return cls(name, data.size, data)


@dataclass(frozen=True)
class Buffer:
    """A box of a memory. offset, strides, low and high in bytes; the box lies in [low, high).

    base: offset of the whole buffer that this is a box of; value: what made that buffer.
    """

    memory: Memory
    space: str
    dtype: np.dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    base: int
    value: ir.Value | None = None
    low: int = field(init=False)
    high: int = field(init=False)

    def __post_init__(self):
        empty = 0 in self.shape
        reach = sum((n - 1) * stride for n, stride in zip(self.shape, self.strides))
        object.__setattr__(self, "low", self.offset)
        end = self.offset if empty else self.offset + reach + self.dtype.itemsize
        object.__setattr__(self, "high", end)

    @classmethod
    def whole(cls, memory: Memory, type_: ir.Type, offset: int = 0, value=None) -> Buffer:
        """A row-major buffer of memref type `type_` at a byte offset of `memory`."""
        type_ = ir.MemRefType(type_)
        dtype, shape = dtype_of(type_.element_type), tuple(type_.shape)
        strides = row_major(shape, dtype.itemsize)
        return cls(memory, space_of(type_), dtype, offset, shape, strides, offset, value)

    @property
    def bytes(self) -> int:
        """Of the elements, without the gaps between them."""
        return prod(self.shape) * self.dtype.itemsize

    def array(self) -> np.ndarray:
        """The elements, as a view."""
        if 0 in self.shape:  # may stand behind the end of the memory
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, self.memory.data, self.offset, self.strides)

    def count_moves(self) -> None:
        """Note that a move wrote every element once more."""
        if self.memory.moves_in is not None:
            counts = self.move_counts()
            counts += 1

    def move_counts(self) -> np.ndarray:
        """How often a move wrote each element, as a view."""
        strides = [4 * stride for stride in self.strides]
        return np.ndarray(self.shape, np.int32, self.memory.moves_in, 4 * self.offset, strides)

    def box(self, offsets, sizes, steps=None) -> Buffer:
        """The elements from `offsets` on, every `steps`-th one; raises ValueError outside."""
        steps = steps or (1,) * len(sizes)
        for dim, (first, size, step) in enumerate(zip(offsets, sizes, steps)):
            last = first + (size - 1) * step
            if first < 0 or size < 0 or step < 1 or (size and last >= self.shape[dim]):
                raise ValueError(
                    f"[{first}, {last}] of dimension {dim} is outside of the extent "
                    f"{self.shape[dim]}"
                )
        start = self.offset + sum(a * stride for a, stride in zip(offsets, self.strides))
        strides = tuple(step * stride for step, stride in zip(steps, self.strides))
        return replace(self, offset=start, shape=tuple(sizes), strides=strides)

    def reshaped(self, shape, strides) -> Buffer:
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def permuted(self, order) -> Buffer:
        """Dimension i of the result is dimension order[i]."""
        return self.reshaped((self.shape[i] for i in order), (self.strides[i] for i in order))

    def __str__(self) -> str:
        name = self.value.get_name() if self.value is not None else self.memory.name
        extents = "x".join(map(str, self.shape)) or "scalar"
        return f"{self.space} buffer {name} ({extents}, bytes {self.low} to {self.high})"


def row_major(shape, item: int) -> tuple[int, ...]:
    """Byte strides of a row-major array."""
    strides = [item]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if shape else ()


def overlap(a: Buffer, b: Buffer) -> bool:
    """Whether two boxes share bytes; for boxes of one buffer exact, otherwise by their ends."""
    if a.memory is not b.memory or a.high <= b.low or b.high <= a.low:
        return False
    if a.base != b.base or a.dtype != b.dtype:
        return True
    first, second = _dense_dims(a), _dense_dims(b)
    if first is None or second is None or first.keys() != second.keys():
        return True
    left, right = a.offset - a.base, b.offset - b.base
    for stride in sorted(first, reverse=True):
        x, left = divmod(left, stride)
        y, right = divmod(right, stride)
        if x + first[stride] <= y or y + second[stride] <= x:
            return False
    return abs(left - right) < a.dtype.itemsize


def _dense_dims(buffer: Buffer) -> dict[int, int] | None:
    """Extent by stride of the dimensions longer than 1; None where two have one stride."""
    kept = [(s, n) for n, s in zip(buffer.shape, buffer.strides) if n > 1]
    return dict(kept) if len({s for s, _ in kept}) == len(kept) else None
