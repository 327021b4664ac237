"""Random nests of loops give pipelined what they give serial, for every number of iterations."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_programs.batch import WatchedMachine, main
from random_programs.bulk import SEED
from random_programs.nests import INPUTS, ROWS, WIDTH, Nests

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.passes.pipelines import STAGES
from mlir_npu.passes.run_stages import run_stage
from mlir_npu.simulator.functional import run_function

NESTS, SHARDS = 200, 4
TARGET = load_target("small")


def run(module: ir.Module, number: int, nests: Nests, machine=None):
    """The stored rows of every output, and how often their elements were moved."""
    rng = np.random.default_rng(number)
    inputs = [rng.integers(-4, 5, (ROWS, WIDTH)).astype(np.float32) for _ in range(INPUTS)]
    outputs = [np.empty((ROWS, WIDTH), np.float32) for _ in nests.rows]
    moves = run_function(module.operation, main(number)[1:], inputs, outputs, machine)
    return [(array[:rows], times[:rows]) for array, times, rows in zip(outputs, moves, nests.rows)]


def pipelined(text: str) -> ir.Module:
    module = ir.Module.parse(text)
    set_target(module.operation, TARGET)
    for stage in STAGES:
        if stage.name in ("pipeline", "allocate"):
            run_stage(module, stage)
    return module


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_nests(shard, record_property):
    made, texts = [], []
    for number in range(NESTS // SHARDS):
        rng = random.Random(f"{SEED}:nest {shard}:{number}")
        made.append(Nests(rng, acc_buffers=rng.choice((1, 2))))
        texts.append(made[-1].text(number))
    with make_context(), ir.Location.unknown():
        serial, module = ir.Module.parse("\n".join(texts)), pipelined("\n".join(texts))
        ahead = str(module).count("npu.dma_none")
        record_property("counted", {f"random nests of seed {SEED}": len(made)})
        for number, nests in enumerate(made):
            where = f"MLIR_NPU_TEST_SEED={SEED}, nest {number} of shard {shard}:\n{texts[number]}"
            machine = WatchedMachine(module.operation)
            results = run(module, number, nests, machine)
            machine.check(TARGET)
            for (got, moves), (want, _) in zip(results, run(serial, number, nests)):
                np.testing.assert_array_equal(got, want, where)
                assert (moves == 1).all(), where
    assert ahead > len(made) / 2, "hardly any move was overlapped"
