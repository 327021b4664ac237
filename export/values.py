"""The values of a plan by name, and the bytes of those that the model brings."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from mlir_npu.export.plan import ALIGNMENT, Source, Value


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def span_bytes(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> int:
    """From the first to the last element."""
    if not prod(shape):
        return 0
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return (last + 1) * dtype.itemsize


class Values:
    """Every value of a program, in the order in which they are met."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}

    def __iter__(self):
        return iter(self._values.values())

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def unused(self, name: str) -> str:
        """The name, with a number if it is taken."""
        number, free = 2, name
        while free in self._values:
            free, number = f"{name}_{number}", number + 1
        return free

    def add(
        self,
        name: str,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        source: Source,
    ) -> Value:
        """A value with memory of its own."""
        size = span_bytes(shape, strides, dtype)
        return self._put(Value(name, dtype_name(dtype), tuple(shape), tuple(strides), size, source))

    def add_view(
        self,
        name: str,
        of: Value,
        byte_offset: int,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        unit: str | None = None,
    ) -> Value:
        """A value in the memory of another one, which may be a view itself."""
        return self._put(
            Value(
                name,
                dtype_name(dtype),
                tuple(shape),
                tuple(strides),
                0,
                Source("computed", unit=unit),
                of.base or of.name,
                of.byte_offset + byte_offset,
            )
        )

    def _put(self, value: Value) -> Value:
        if value.name in self._values:
            raise ValueError(f"two values are called {value.name}")
        self._values[value.name] = value
        return value


class Weights:
    """Tensors one behind the other, each at a multiple of the alignment, in their own strides."""

    def __init__(self) -> None:
        self._contents = bytearray()

    def add(self, tensor: torch.Tensor) -> int:
        """The offset that it gets."""
        offset = -(-len(self._contents) // ALIGNMENT) * ALIGNMENT
        self._contents += bytes(offset - len(self._contents)) + _memory_of(tensor)
        return offset

    @property
    def contents(self) -> bytes:
        return bytes(self._contents)


def _memory_of(tensor: torch.Tensor) -> bytes:
    """All that lies between its first and its last element."""
    tensor = tensor.detach().resolve_neg()
    count = span_bytes(tensor.shape, tensor.stride(), tensor.dtype) // tensor.itemsize
    memory = tensor.as_strided((count,), (1,))
    return memory.view(torch.uint8).numpy().tobytes()
