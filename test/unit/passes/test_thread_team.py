"""Kernels on torch's threads: shares cover all iterations, scratch memory is private."""

import numpy as np
import pytest
import torch
from jit import LLVM, Function

ITERATIONS = 37
SCRATCH = 64
CPU = "strip-memory-spaces,outline-parallel"
TEAM = f"{LLVM},insert-thread-team"


def text(threads=None):
    """Every iteration hands its number through scratch memory to its place in the output."""
    attributes = "" if threads is None else f"attributes {{npu.num_threads = {threads} : i64}} "
    return f"""module {attributes}{{
  func.func private @k(%o: memref<{ITERATIONS}x16xi64>,
                       %scratch: memref<{SCRATCH}xi8> {{npu.role = "scratch"}})
      attributes {{npu.kernel = "eltwise"}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %v = memref.view %scratch[%c0][] : memref<{SCRATCH}xi8> to memref<8xi64>
    scf.forall (%i) in ({ITERATIONS}) {{
      %n = arith.index_cast %i : index to i64
      memref.store %n, %v[%c0] : memref<8xi64>
      scf.for %j = %c0 to %c7 step %c1 {{
        %from = memref.load %v[%j] : memref<8xi64>
        %next = arith.addi %j, %c1 : index
        memref.store %from, %v[%next] : memref<8xi64>
      }}
      %last = memref.load %v[%c7] : memref<8xi64>
      memref.store %last, %o[%i, %c0] : memref<{ITERATIONS}x16xi64>
    }}
    return
  }}
  func.func @main(%o: memref<{ITERATIONS}x16xi64>, %scratch: memref<{SCRATCH}xi8>) {{
    call @k(%o, %scratch) : (memref<{ITERATIONS}x16xi64>, memref<{SCRATCH}xi8>) -> ()
    return
  }}
}}"""


@pytest.fixture
def torch_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def run(function, threads):
    """The output and how many threads left something in their scratch memory."""
    o = np.full((ITERATIONS, 16), -1, np.int64)
    scratch = np.full((threads + 1, SCRATCH // 8), -1, np.int64)
    for _ in range(50):
        o[:] = -1
        function(o, scratch)
        np.testing.assert_array_equal(o[:, 0], np.arange(ITERATIONS))
    return int((scratch[:, 7] >= 0).sum())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_team_of_torchs_size(torch_threads, threads):
    torch_threads(threads)
    assert run(Function(text(), cpu=CPU, llvm=TEAM), threads) == threads


def test_module_attribute_overrides_torch(torch_threads):
    torch_threads(2)
    assert run(Function(text(threads=3), cpu=CPU, llvm=TEAM), 3) == 3
    assert run(Function(text(threads=1), cpu=CPU, llvm=TEAM), 1) == 1


def test_serial_driver_needs_no_openmp(torch_threads):
    torch_threads(2)
    serial = Function(text(), cpu=CPU, llvm=f"{LLVM},insert-thread-team{{serial=true}}")
    assert run(serial, 2) == 1
