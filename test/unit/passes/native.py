"""Kernels through every stage to machine code, run on arrays."""

from __future__ import annotations

import ctypes

import numpy as np
from staged.kernel_text import Kernel

from mlir_npu.dialect.bindings import ExecutionEngine, ir, make_context
from mlir_npu.dialect.target import Target, set_target
from mlir_npu.passes.kernels.walk import argument_roles, entry, functions, symbol
from mlir_npu.passes.run_stages import run_stages

MEMORY = ("workspace", "scratch")


def run_native(kernel: Kernel, target: Target, arrays, threads: int = 1) -> np.ndarray:
    """@main from the schedule stage to the JIT."""
    sizes: list[int] = []

    def note_memory(stage: str, module: ir.Module) -> None:
        if stage == "allocate":
            sizes.extend(memory_of(module, "main"))

    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(kernel.text)
        set_target(module.operation, target)
        run_stages(module, note_memory, first="schedule")
        engine = ExecutionEngine(module, opt_level=2)
    output = np.full(kernel.output, np.nan, np.float32)
    call(engine, "main", arrays, output, sizes, threads)
    return output


def memory_of(module: ir.Module, name: str) -> list[int]:
    """Bytes of the workspace and of the scratchpad that a function takes, after "allocate"."""
    function = next(f for f in functions(module.operation) if symbol(f) == name)
    arguments = zip(entry(function).arguments, argument_roles(function))
    return [argument.type.shape[0] for argument, role in arguments if role in MEMORY]


def call(
    engine: ExecutionEngine, name: str, arrays, output: np.ndarray, sizes, threads: int = 1
) -> None:
    """Call a function; memory of `sizes` starts as NaN, guarded against overruns."""
    memory = [np.full(size * threads + 64, 255, np.uint8) for size in sizes]
    inputs = [array.copy() for array in arrays]
    _call(engine, name, [*inputs, output, *memory])
    for block, size in zip(memory, sizes):
        assert (block[size * threads :] == 255).all(), "memory behind the scratchpad was written"
    for before, after in zip(arrays, inputs):
        np.testing.assert_array_equal(before, after)


def _call(engine: ExecutionEngine, name: str, arrays: list[np.ndarray]) -> None:
    address = engine.raw_lookup(name)
    assert address, f"{name} has undefined symbols"
    values = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
    base = ctypes.addressof(values)
    block = (ctypes.c_void_p * len(values))(*[base + 8 * i for i in range(len(values))])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(block))
