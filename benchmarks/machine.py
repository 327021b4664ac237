"""What the machine can do: the peak rate of fused multiply-adds, and the bandwidth of copies.

Both are measured, in every worker process, before and after its case: clocks and neighbours change.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import torch

from mlir_npu.dialect.bindings import ExecutionEngine, ir, make_context
from mlir_npu.dialect.target import load_target
from mlir_npu.passes.pass_manager import run_pipeline

ITERATIONS = 200_000
TRIES = 5
COPY_BYTES = 64 << 20
LOWERING = (
    "convert-scf-to-cf,convert-vector-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,"
    "finalize-memref-to-llvm,convert-cf-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},reconcile-unrealized-casts"
)
PACKAGES = ("torch", "torch-mlir", "onnxruntime", "openvino", "onnx", "transformers", "numpy")


class FmaLoop:
    """Independent multiply-adds on registers, as many as hide the latency of one another."""

    def __init__(self) -> None:
        vector = load_target("host").vector
        accumulators = vector.registers - 4 if vector.registers <= 16 else 24
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(_loop_text(vector.lanes, accumulators))
            run_pipeline(module, f"builtin.module({LOWERING})")
            self._engine = ExecutionEngine(module, opt_level=3)
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._engine.raw_lookup("main"))
        self._memory = torch.ones(vector.lanes)
        self.flops = 2 * ITERATIONS * accumulators * vector.lanes

    def __call__(self) -> None:
        """Run once on this thread; the lock of the interpreter is free meanwhile."""
        slot = ctypes.c_void_p(self._memory.data_ptr())
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(slot))
        self._run(ctypes.addressof(arguments))


def _loop_text(lanes: int, accumulators: int) -> str:
    """Every accumulator is stored at the end, so that none is optimised away."""
    vector, memory = f"vector<{lanes}xf32>", f"memref<{lanes}xf32>"
    count = range(accumulators)
    carried = ", ".join(f"%a{i} = %one" for i in count)
    types = ", ".join([vector] * accumulators)
    body = "\n".join(f"    %b{i} = vector.fma %one, %half, %a{i} : {vector}" for i in count)
    sums = "\n".join(
        f"  %s{i + 1} = arith.addf %s{i}, %r#{i} : {vector}" for i in range(accumulators)
    )
    return f"""
func.func @main(%memory: {memory}) attributes {{llvm.emit_c_interface}} {{
  %from = arith.constant 0 : index
  %to = arith.constant {ITERATIONS} : index
  %step = arith.constant 1 : index
  %one = vector.load %memory[%from] : {memory}, {vector}
  %half = arith.mulf %one, %one : {vector}
  %r:{accumulators} = scf.for %i = %from to %to step %step iter_args({carried}) -> ({types}) {{
{body}
    scf.yield {", ".join(f"%b{i}" for i in count)} : {types}
  }}
  %s0 = arith.constant dense<0.0> : {vector}
{sums}
  vector.store %s{accumulators}, %memory[%from] : {memory}, {vector}
  return
}}
"""


def in_threads(call: Callable[[], None], threads: int) -> float:
    """Seconds from the first start to the last end of `call` in so many threads."""
    if threads == 1:
        started = time.perf_counter()
        call()
        return time.perf_counter() - started
    barrier = threading.Barrier(threads)
    spans: list[tuple[float, float]] = []

    def work() -> None:
        barrier.wait()
        started = time.perf_counter()
        call()
        spans.append((started, time.perf_counter()))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)


class Peaks:
    """The best rates seen so far. peak: GFLOP/s of multiply-adds; copy: GB/s, read plus written."""

    def __init__(self, threads: int) -> None:
        self._threads, self._loop = threads, FmaLoop()
        self._source = torch.ones(COPY_BYTES // 4)
        self._target = torch.zeros_like(self._source)
        self.peak = self.copy = 0.0
        self.measure()

    def measure(self) -> None:
        for _ in range(TRIES):
            seconds = in_threads(self._loop, self._threads)
            self.peak = max(self.peak, 1e-9 * self._threads * self._loop.flops / seconds)
            started = time.perf_counter()
            self._target.copy_(self._source)
            seconds = time.perf_counter() - started
            self.copy = max(self.copy, 2e-9 * COPY_BYTES / seconds)


def describe() -> dict:
    """The machine and the versions of what runs on it."""
    vector = load_target("host").vector
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "vector_lanes": vector.lanes,
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := version(name))},
    }


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
