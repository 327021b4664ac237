"""Machine code of a lowered module, and how to call it.

ABI: every function takes bare pointers. The packed entry `_mlir_<name>(void **argv)` gets an array
of addresses of 8-byte slots; slot i holds the data pointer of argument i. The arrays are built once
(SlotBlock), a call costs one foreign call. ctypes releases the GIL while the code runs.
"""

from __future__ import annotations

import ctypes

import torch

from mlir_npu.dialect.bindings import ExecutionEngine, ir


class KernelLinkError(RuntimeError):
    """The module does not become machine code, has no such function, or lacks a symbol."""


class SlotBlock:
    """The argument memory of one call in flight. `values[i]` is the data pointer of argument i."""

    __slots__ = ("_argv", "address", "tag", "values")

    def __init__(self, count: int) -> None:
        self.values = (ctypes.c_void_p * count)()
        base = ctypes.addressof(self.values)
        self._argv = (ctypes.c_void_p * count)(*range(base, base + 8 * count, 8))
        self.address = ctypes.addressof(self._argv)
        self.tag = 0  # what the owner last stored in the slots that seldom change


class Kernel:
    """A function of a module in the LLVM dialect. Safe to call from several threads, each with its
    own block."""

    def __init__(self, module: ir.Module, entry: str = "main", opt_level: int = 3) -> None:
        try:
            engine = ExecutionEngine(module, opt_level=opt_level, enable_object_dump=False)
        except RuntimeError as error:  # an operation is left that LLVM IR cannot express
            raise KernelLinkError(f"{error} (its reason is on stderr)") from error
        self._bind(engine, entry)

    def _bind(self, engine: ExecutionEngine, entry: str) -> None:
        address = engine.raw_lookup(entry)
        if not address:
            raise KernelLinkError(
                f"no function @{entry} in the compiled module, or an external of it is undefined "
                "(the JIT names the symbol on stderr)"
            )
        self._engine = engine  # the code dies with the engine
        self.entry = entry
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def sibling(self, entry: str) -> Kernel:
        """Another function of the same module."""
        kernel = Kernel.__new__(Kernel)
        kernel._bind(self._engine, entry)
        return kernel

    def __call__(self, *tensors: torch.Tensor) -> None:
        """Run on packed tensors in the order of the function's arguments; results are
        out-parameters."""
        block = SlotBlock(len(tensors))
        for index, tensor in enumerate(tensors):
            block.values[index] = tensor.data_ptr()
        self.run(block.address)
