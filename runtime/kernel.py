"""Machine code of a lowered module, and how to call it.

ABI: every function takes one pointer to an array of 8-byte slots; slot i holds the data pointer of
argument i. The array is built once (SlotBlock), a call costs one foreign call. ctypes releases the
GIL while the code runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlir_npu.runtime.native_code import KernelLinkError as KernelLinkError
from mlir_npu.runtime.native_code import NativeCode

if TYPE_CHECKING:
    import torch

    from mlir_npu.dialect.bindings import ir


class SlotBlock:
    """The argument memory of one call in flight. `values[i]` is the data pointer of argument i."""

    __slots__ = ("address", "memory", "tag", "threads", "values")

    def __init__(self, count: int) -> None:
        self.values = (ctypes.c_void_p * count)()
        self.address = ctypes.addressof(self.values)
        self.tag = 0  # what the owner last stored in the slots that seldom change
        self.memory: torch.Tensor | None = None  # of its own, enough for so many threads
        self.threads = 0


class Kernel:
    """A function of compiled code. Safe to call from several threads, each with its own block."""

    def __init__(self, module: ir.Module, entry: str = "main", opt_level: int = 3) -> None:
        """Compile a module in the LLVM dialect."""
        from mlir_npu.runtime.emit import emit_object  # loads MLIR

        self._bind(NativeCode([emit_object(module, opt_level=opt_level)]), entry)

    @classmethod
    def of_objects(cls, objects: Sequence[bytes], entry: str = "main") -> Kernel:
        """Link objects that were compiled before."""
        kernel = cls.__new__(cls)
        kernel._bind(NativeCode(objects), entry)
        return kernel

    def sibling(self, entry: str) -> Kernel:
        """Another function of the same code."""
        kernel = Kernel.__new__(Kernel)
        kernel._bind(self._code, entry)
        return kernel

    def _bind(self, code: NativeCode, entry: str) -> None:
        address = code.address(entry)
        if not address:
            raise KernelLinkError(f"no function @{entry} in the compiled module")
        self._code = code  # the machine code dies with it
        self.entry = entry
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Run on packed tensors in the order of the function's arguments; results are
        out-parameters."""
        block = SlotBlock(len(tensors))
        for index, tensor in enumerate(tensors):
            block.values[index] = tensor.data_ptr()
        self.run(block.address)
