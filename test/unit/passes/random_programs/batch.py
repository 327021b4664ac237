"""Many programs compiled as one module, and each run on the simulator or as machine code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from staged.kernel_text import Kernel

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import Target, set_target
from mlir_npu.passes.analysis.footprint import KernelShape
from mlir_npu.passes.kernels.describe import describe
from mlir_npu.passes.kernels.walk import kernels
from mlir_npu.passes.pass_manager import PipelineFailure, run_pipeline
from mlir_npu.passes.run_stages import run_stages
from mlir_npu.simulator.buffers import Buffer
from mlir_npu.simulator.functional import FunctionalMachine, run_function

ON_CHIP = ("sram", "acc")


class TurnedAway(Exception):
    """The compiler says that a kernel does not fit."""


@dataclass(frozen=True)
class Program:
    """A kernel with its schedule, from where `mode` says; `name` says how to make it again."""

    name: str
    mode: str
    kernel: Kernel
    seed: int

    def text(self, number: int) -> str:
        """The module of the kernel, with names of its own."""
        text = self.kernel.text.replace("@kernel(", f"@kernel_{number}(")
        return text.replace("@main(", f"{main(number)}(")


def main(number: int) -> str:
    return f"@main_{number}"


def shape_of(kernel: Kernel, target: Target) -> KernelShape:
    """The loops and operands that tile choice sees. In the current context, as these are dear."""
    module = ir.Module.parse(kernel.text)
    return describe(kernels(module.operation)[0], target.vector.lanes)


def chosen_schedule(kernel: Kernel, target: Target, mode: str) -> str:
    """What choose-tiles decides in a mode. Raises TurnedAway with its message."""
    module = ir.Module.parse(kernel.text)
    set_target(module.operation, target)
    try:
        run_pipeline(module, f"builtin.module(choose-tiles{{mode={mode}}})")
    except PipelineFailure as failure:
        raise TurnedAway(str(failure)) from None
    return str(kernels(module.operation)[0].attributes["npu.schedule"])


def compiled(programs: Sequence[Program], target: Target, last: str = "allocate", on_stage=None):
    """One module with @main_0, @main_1, ... after the stage `last`."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("\n".join(p.text(i) for i, p in enumerate(programs)))
        set_target(module.operation, target)
        run_stages(module, on_stage, first="schedule", last=last)
        return module


def simulate(program: Program, module: ir.Module, number: int, capacities: Target | None) -> None:
    """The output is exact, moved out once per element, and no memory is exceeded."""
    kernel, arrays = program.kernel, program.kernel.arrays(program.seed)
    machine = WatchedMachine(module.operation)
    output = np.empty(kernel.output, np.float32)
    (moves,) = run_function(module.operation, main(number)[1:], arrays, [output], machine)
    assert (moves == 1).all(), "some output elements were not moved out exactly once"
    np.testing.assert_array_equal(output, kernel.reference(*arrays))
    if capacities is not None:
        machine.check(capacities)


class WatchedMachine(FunctionalMachine):
    """Notes which bytes of the memories on chip are touched."""

    def __init__(self, module: ir.Operation):
        super().__init__(module)
        self._touched: dict[str, tuple[int, int]] = {}

    def move(self, op):
        start = super().move(op)

        def watched(source, target, low):
            self._note(source)
            self._note(target)
            return start(source, target, low)

        return watched

    def compute(self, op):
        compute = super().compute(op)

        def watched(buffers):
            for buffer in buffers:
                self._note(buffer)
            return compute(buffers)

        return watched

    def _note(self, buffer: Buffer) -> None:
        if buffer.space in ON_CHIP:
            assert buffer.memory.name == "scratchpad", f"{buffer} is in {buffer.memory.name}"
            low, high = self._touched.get(buffer.space, (buffer.low, buffer.high))
            self._touched[buffer.space] = min(low, buffer.low), max(high, buffer.high)

    def check(self, target: Target) -> None:
        """All bytes of a memory that were touched, live or not, lie in one block of its size."""
        first, end = self._touched.get("sram", (0, 0))
        assert end <= target.sram.bytes, f"sram is touched up to byte {end} of {target.sram.bytes}"
        start, last = self._touched.get("acc", (end, end))
        assert last - start <= target.acc.bytes, f"{last - start} bytes of acc are touched"
        assert start >= end, f"acc begins at {start}, sram ends at {end}"
