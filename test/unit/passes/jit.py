"""Run hand-written npu functions on numpy arrays: the cpu stage, upstream lowering, the JIT."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mlir_npu.dialect.bindings import ExecutionEngine, ir, make_context
from mlir_npu.dialect.slots import MAX_INPUTS
from mlir_npu.dialect.target import Target, load_target, set_target
from mlir_npu.passes.pass_manager import run_pipeline

INPUTS = Path(__file__).resolve().parents[2] / "lit" / "Inputs"
CPU = "convert-npu-to-vector,strip-memory-spaces,approximate-math"
LLVM = (
    "canonicalize,cse,loop-invariant-code-motion,expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,"
    "convert-vector-to-llvm,convert-ub-to-llvm,convert-math-to-llvm,convert-math-to-libm,"
    "convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,convert-cf-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},canonicalize,cse,"
    "reconcile-unrealized-casts"
)


@dataclass(frozen=True)
class Unit:
    lanes: int
    registers: int
    byte_products: int = 1


AVX512, AVX2, SSE = Unit(16, 32), Unit(8, 16), Unit(4, 16)


def target_with(unit: Unit) -> Target:
    target = load_target(INPUTS / "avx512.toml")
    vector = replace(target.vector, lanes=unit.lanes, registers=unit.registers)
    rates = replace(target.matrix.macs_per_cell, i8=unit.byte_products)
    return replace(target, vector=vector, matrix=replace(target.matrix, macs_per_cell=rates))


class Function:
    """`main` of a module in npu form, compiled for a vector unit; call it with its arguments."""

    def __init__(self, text: str, unit: Unit = AVX512, cpu: str = CPU, llvm: str = LLVM) -> None:
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            set_target(module.operation, target_with(unit))
            run_pipeline(module, f"builtin.module({cpu})")
            self.vector_text = str(module)
            run_pipeline(module, f"builtin.module({llvm})")
            self.engine = ExecutionEngine(module, opt_level=3)
            address = self.engine.raw_lookup("main")
        assert address, "the module has undefined symbols"
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, *arrays: np.ndarray) -> None:
        assert all(a.flags.c_contiguous for a in arrays)
        self.prepared(arrays)()

    def prepared(self, arrays: Sequence[np.ndarray]):
        """The call with its argument block built once, for timing."""
        values = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        base = ctypes.addressof(values)
        addresses = (ctypes.c_void_p * len(arrays))(*[base + 8 * i for i in range(len(arrays))])
        pointer = ctypes.addressof(addresses)
        return lambda run=self._run, keep=(values, arrays, addresses): run(pointer)


def memref_type(shape: Sequence[int], space: str | None = None, element: str = "f32") -> str:
    dims = "".join(f"{d}x" for d in shape)
    return (
        f"memref<{dims}{element}>"
        if space is None
        else f'memref<{dims}{element}, #npu.space<"{space}">>'
    )


def signature(**shapes: Sequence[int]) -> str:
    """Arguments of dense f32 buffers, and their casts on chip under the same name with `_t`."""
    return ", ".join(f"%{name}: {memref_type(shape)}" for name, shape in shapes.items())


def on_chip(**shapes: Sequence[int]) -> str:
    """`%name_t`: the argument `%name` as an on-chip tile."""
    return "\n".join(
        f"%{name}_t = memref.memory_space_cast %{name} : "
        f"{memref_type(s)} to {memref_type(s, 'sram')}"
        for name, s in shapes.items()
    )


def accumulator(shape: Sequence[int], name: str = "acc", arena: str = "acc_arena") -> str:
    """`%name`: a tile in accumulator memory backed by the argument `%arena`."""
    plain, tile = memref_type(shape), memref_type(shape, "acc")
    return f"%{name} = memref.memory_space_cast %{arena} : {plain} to {tile}"


def segments(inputs: int, *, accumulator: bool = False) -> str:
    """The `operandSegmentSizes` of an op with `inputs` inputs and one output."""
    sizes = [1] * accumulator + [1] * inputs + [0] * (MAX_INPUTS - inputs) + [1]
    return f"operandSegmentSizes = array<i32: {', '.join(map(str, sizes))}>"
