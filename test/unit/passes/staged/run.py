"""Compile a kernel up to a stage and run it on the simulator or, from linalg, on the CPU."""

from __future__ import annotations

import ctypes

import numpy as np

from mlir_npu.dialect.bindings import ExecutionEngine, ir, make_context
from mlir_npu.dialect.target import Target, load_target, set_target
from mlir_npu.passes.pass_manager import run_pipeline
from mlir_npu.passes.run_stages import run_stages
from mlir_npu.simulator.functional import run_function
from staged.kernel_text import Kernel

LLVM = (
    "func.func(refback-munge-memref-copy),buffer-deallocation-pipeline,"
    "convert-bufferization-to-memref,convert-linalg-to-loops,scf-forall-to-for,"
    "fold-memref-alias-ops,expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,convert-cf-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},canonicalize,reconcile-unrealized-casts"
)


def compile_to(
    kernel: Kernel, stage: str, target: str | Target = "edge", schedule: str = "pipelined"
) -> ir.Module:
    """The module after `stage`; its context stays alive with it."""
    target = load_target(target) if isinstance(target, str) else target
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(kernel.text)
        set_target(module.operation, target)
        run_stages(module, first="schedule", last=stage, schedule=schedule)
        return module


def interpret(kernel: Kernel, module: ir.Module, arrays, counted: bool = True) -> np.ndarray:
    """Run @main; if `counted`, checks that every output element was moved out exactly once."""
    output = np.empty(kernel.output, np.float32)
    (moves,) = run_function(module.operation, "main", arrays, [output])
    if counted:
        assert (moves == 1).all(), "some output elements were not moved out exactly once"
    return output


def execute(kernel: Kernel, module: ir.Module, arrays) -> np.ndarray:
    """Run @main of a module after "buffers" through upstream's loops and the JIT."""
    with module.context, ir.Location.unknown():
        run_pipeline(module, f"builtin.module({LLVM})")
        engine = ExecutionEngine(module, opt_level=2)
    output = np.full(kernel.output, np.nan, np.float32)
    values = (ctypes.c_void_p * (len(arrays) + 1))(*[a.ctypes.data for a in [*arrays, output]])
    base = ctypes.addressof(values)
    block = (ctypes.c_void_p * len(values))(*[base + 8 * i for i in range(len(values))])
    address = engine.raw_lookup("main")
    assert address, "main has undefined symbols"
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(block))
    return output


def check(kernel: Kernel, target: str | Target = "edge", seed: int = 0) -> ir.Module:
    """From stage "stage" to "allocate" results are exact; returns the allocated module."""
    arrays = kernel.arrays(seed)
    expected = kernel.reference(*arrays)
    target = load_target(target) if isinstance(target, str) else target
    for stage in ("stage", "pipeline", "allocate"):
        module = compile_to(kernel, stage, target)
        in_place = target.cached and stage == "allocate"  # moves that only copy are left out
        result = interpret(kernel, module, arrays, counted=not in_place)
        np.testing.assert_array_equal(result, expected, stage)
    return module
