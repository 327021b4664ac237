"""Random tile programs on the simulator: exact, every output once, within the memories.

Kernels, schedules and data follow from one seed. MLIR_NPU_TEST_SEED sets another one and
MLIR_NPU_TEST_PROGRAMS a larger count; a failure names the seed and its case.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import pytest
from random_programs.batch import compiled, simulate
from random_programs.bulk import UNTILED, Bulk, Case
from random_programs.kernels import WIDE

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target

PROGRAMS = int(os.environ.get("MLIR_NPU_TEST_PROGRAMS", "2000"))
MORE = 10  # times as many with --slow
SHARDS = 8
KERNELS = -(
    -PROGRAMS * 5 // (17 * SHARDS)
)  # of a shard; each gives between three and four programs
SMALL, EDGE = load_target("small"), load_target("edge")
TIGHT = replace(  # most tiles leave no room for a second one
    SMALL,
    name="tight",
    sram=replace(SMALL.sram, bytes=2048),
    acc=replace(SMALL.acc, bytes=512),
)
SPLIT = replace(  # most moves become several
    SMALL, name="split", dma=replace(SMALL.dma, channels=2, max_rank=2, setup_cycles=1)
)
TARGETS = (SMALL, EDGE, SPLIT, TIGHT)  # in turns


def run_shard(number: int, kernels: int, record) -> None:
    for target in TARGETS:
        own = range(number * kernels, (number + 1) * kernels)
        numbers = [i for i in own if TARGETS[i % len(TARGETS)] == target]
        bulk = Bulk()
        with make_context(), ir.Location.unknown():
            for case in (Case.of(i, target, WIDE) for i in numbers):
                bulk.add_given(case)
                bulk.add_chosen(case, "pipelined")
                bulk.add_chosen(case, UNTILED)

        def run(program, module, position, target=target):
            simulate(program, module, position, None if program.mode == UNTILED else target)

        bulk.run(partial(compiled, target=target), run)
        record("counted", bulk.counted(f"on {target.name}"))
        bulk.check(may_turn_away=target != EDGE)
        assert target == TIGHT or 3 * len(bulk.turned_away) < len(numbers), bulk.turned_away


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_programs(shard, record_property):
    run_shard(shard, KERNELS, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS, SHARDS * (1 + MORE)))
def test_many_random_programs(shard, record_property):
    run_shard(shard, KERNELS, record_property)
