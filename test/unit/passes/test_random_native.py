"""Random tile programs as machine code, through every stage: moves made for real, or elided.

Several programs are compiled as one module, since a compilation costs more than a run.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from jit import AVX2, AVX512, SSE, target_with
from native import call, memory_of
from random_programs.batch import compiled, main
from random_programs.bulk import UNTILED, Bulk, Case

from mlir_npu.dialect.bindings import ExecutionEngine, ir, make_context
from mlir_npu.dialect.target import load_target

pytestmark = pytest.mark.usefixtures("one_thread")
KERNELS = 32
FIRST = 1_000_000  # other kernels than those on the simulator


def with_memories(name, unit):
    """A target with a vector unit that this CPU has; every tile is moved."""
    target = load_target(name)
    return replace(
        target, vector=replace(target.vector, lanes=unit.lanes, registers=unit.registers)
    )


def with_split_moves(target):
    dma = replace(target.dma, channels=2, max_rank=2, setup_cycles=1)
    return replace(target, dma=dma)


TARGETS = {
    "small, AVX-512": with_memories("small", AVX512),
    "small, AVX2, split moves": with_split_moves(with_memories("small", AVX2)),
    "edge, SSE": with_memories("edge", SSE),
    "cached": target_with(AVX512),
}


class Machine:
    """Compiles programs, and calls each with memory that starts as NaN and is guarded at its end."""

    def __init__(self, target):
        self.target, self.engine = target, None

    def compile(self, programs):
        self.sizes = {}

        def note_memory(stage, module):
            if stage == "allocate":
                self.sizes = {i: memory_of(module, main(i)[1:]) for i in range(len(programs))}

        module = compiled(programs, self.target, "llvm", note_memory)
        with module.context, ir.Location.unknown():
            self.engine = ExecutionEngine(module, opt_level=2)
        return module

    def run(self, program, module, number):
        kernel, arrays = program.kernel, program.kernel.arrays(program.seed)
        output = np.full(kernel.output, np.nan, np.float32)
        call(self.engine, main(number)[1:], arrays, output, self.sizes[number])
        np.testing.assert_array_equal(output, kernel.reference(*arrays))


@pytest.mark.parametrize("name", TARGETS)
def test_random_machine_code(name, record_property):
    target, bulk = TARGETS[name], Bulk()
    start = FIRST + KERNELS * list(TARGETS).index(name)
    with make_context(), ir.Location.unknown():
        for case in (Case.of(start + i, target) for i in range(KERNELS)):
            bulk.add_given(case)
            bulk.add_chosen(case, "pipelined" if case.number % 4 else UNTILED)
    machine = Machine(target)
    bulk.run(machine.compile, machine.run)
    record_property("counted", bulk.counted("as machine code"))
    bulk.check(may_turn_away=target.name == "small")
