"""One Python dialect in many contexts: repeated, interleaved, in threads."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from mlir_npu.dialect.bindings import ir, make_context

WAIT = """
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
  %0 = "npu.dma_start"(%x, %y) {permutation = array<i64: 0>}
    : (memref<4xf32>, memref<4xf32>) -> !npu.token
  "npu.dma_wait"(%0) : (!npu.token) -> ()
  return
}
"""


def parse_and_verify() -> str:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(WAIT)
        assert module.operation.verify()
        return str(module)


def test_contexts_are_fresh_and_independent():
    with make_context() as outer, ir.Location.unknown():
        module = ir.Module.parse(WAIT)
        assert parse_and_verify() == str(module)
        assert outer.is_dialect_loaded("npu")
        assert module.operation.verify()


def test_contexts_are_not_kept_alive():
    before = ir.Context._get_live_count()
    for _ in range(3):
        parse_and_verify()
    assert ir.Context._get_live_count() <= before


def test_threads_may_make_contexts_at_the_same_time():
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            texts = list(threads.map(lambda _: parse_and_verify(), range(24)))
    finally:
        sys.setswitchinterval(switch)
    assert set(texts) == {parse_and_verify()}


def test_contexts_are_single_threaded():
    assert make_context().get_num_threads() == 1


def test_neither_dialect_nor_passes_import_torch():
    code = (
        "import sys; from mlir_npu.dialect.bindings import make_context;"
        "from mlir_npu.passes.registry import all_passes; make_context(); all_passes();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_op_classes_are_imported_on_demand_only():
    code = (
        "import sys; from mlir_npu.dialect.bindings import make_context; make_context();"
        "slow = 'torch_mlir.dialects.linalg'; assert slow not in sys.modules;"
        "from mlir_npu.dialect.bindings import linalg; assert slow in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
