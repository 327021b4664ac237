"""Random networks compute the same after the normalise passes as before, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_jit import run
from tensor_programs import random_program

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.passes.pass_manager import run_pipeline

CLEANUP = "canonicalize,cse"
PASSES = ("convert-layout", "fuse-elementwise", "pack-weights", "form-kernels", "outline-prepare")
STAYS = {
    "func.call",
    "func.return",
    "tensor.expand_shape",
    "tensor.collapse_shape",
    "arith.constant",
}


def operands(program, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-2, 3, shape).astype(np.float32)
        if role == "input"
        else rng.integers(-1, 2, shape).astype(np.float32)
        for _, shape, role in program.arguments
    ]


@pytest.mark.parametrize("seed", range(24))
def test_same_results_after_all_passes(seed):
    program, text = random_program(seed)
    arrays = operands(program, seed)
    with make_context(), ir.Location.unknown():
        before = run(ir.Module.parse(text), arrays)
        module = ir.Module.parse(text)
        set_target(module.operation, load_target("host"))
        for name in PASSES:
            run_pipeline(module, f"builtin.module({CLEANUP},{name})")
        check_form(module)
        run_pipeline(module, f"builtin.module(duplicate-function-elimination,{CLEANUP})")
        after = run(module, arrays)
    for expected, got in zip(before, after, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("seed", range(24, 40))
@pytest.mark.parametrize("count", range(1, len(PASSES) + 1))
def test_every_pass_is_idempotent(seed, count):
    _, text = random_program(seed)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        set_target(module.operation, load_target("host"))
        for name in PASSES[:count]:
            run_pipeline(module, f"builtin.module({CLEANUP},{name})")
        once = str(module)
        run_pipeline(module, f"builtin.module({PASSES[count - 1]})")
        assert str(module) == once


def check_form(module: ir.Module) -> None:
    """Regions hold calls, reshapes and constants only; kernels take and give tensors."""
    kernels = 0
    for view in module.body.operations:
        function = view.operation
        block = function.regions[0].blocks[0]
        if "npu.kernel" in function.attributes:
            kernels += 1
            assert all(isinstance(a.type, ir.RankedTensorType) for a in block.arguments)
        else:
            assert {op.operation.name for op in block.operations} <= STAYS
    assert kernels


def test_same_input_same_ir():
    _, text = random_program(7)
    texts = set()
    for _ in range(3):
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            set_target(module.operation, load_target("host"))
            run_pipeline(module, f"builtin.module({','.join(PASSES)})")
            texts.add(str(module))
    assert len(texts) == 1
