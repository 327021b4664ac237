"""Does a program depend on when moves deliver, or on memory that nothing has written?

For programs past the stage `schedule`, of which there is no untiled form. Every kernel runs twice
on the same small integers: on the machine that is as late as it may be, with memories of NaN, and
on one that delivers every move at once, with memories of zeros. A right program cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mlir_npu.dialect.attributes import DRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import argument_roles, entry, kernels, symbol
from mlir_npu.simulator.buffers import Buffer, check_type, dtype_of
from mlir_npu.simulator.errors import faults_of
from mlir_npu.simulator.functional import FunctionalMachine, small_integers
from mlir_npu.simulator.program import Program

OUTPUT, SCRATCH = "output", ("scratch", "workspace")


@dataclass(frozen=True)
class DeliveryCheck:
    """Of `elements` in arguments that are written: how many no move wrote, are NaN only where
    moves are late, and differ between the two machines (NaN included)."""

    kernel: str
    elements: int
    unwritten: int
    undefined: int
    differing: int

    @property
    def right(self) -> bool:
        return bool(self.elements) and not (self.unwritten or self.differing)

    def __str__(self) -> str:
        if not self.elements:
            return "writes none of its arguments"
        return (
            f"of {self.elements} results {self.unwritten} are never written, {self.undefined} are "
            f"NaN, {self.differing} differ from those with moves that deliver at once"
        )


def check_delivery(module: ir.Module, only: str | None = None) -> tuple[DeliveryCheck, ...]:
    """Check the kernels of a staged module. Raises SimulationError for races and other faults."""
    own = [kernel for kernel in kernels(module.operation) if only in (None, symbol(kernel))]
    found = []
    for kernel in own:
        with faults_of(kernel):
            found.append(_check(module.operation, kernel))
    return tuple(found)


def _check(module: ir.Operation, kernel: ir.Operation) -> DeliveryCheck:
    rng = np.random.default_rng(0)
    types = [argument.type for argument in entry(kernel).arguments]
    for type_ in types:
        check_type(type_)
    roles = argument_roles(kernel)
    own = [
        role in SCRATCH or space_of(type_) != DRAM for type_, role in zip(types, roles)
    ]  # what a kernel may only use for itself
    data = [None if mine else small_integers(rng, type_) for type_, mine in zip(types, own)]
    soon = _run(module, kernel, FunctionalMachine(module, late=False), data)
    written = [
        not mine and (role == OUTPUT or bool(buffer.move_counts().any()))
        for mine, role, buffer in zip(own, roles, soon)
    ]
    data = [None if output else array for output, array in zip(written, data)]
    late = _run(module, kernel, FunctionalMachine(module), data)
    results = [(a, b) for a, b, output in zip(soon, late, written) if output]
    return _compare(symbol(kernel), results)


def _run(module, kernel, machine: FunctionalMachine, data) -> list[Buffer]:
    """Call a kernel; arguments without data hold what the machine's memories begin with."""
    arguments = []
    for i, (argument, array) in enumerate(zip(entry(kernel).arguments, data)):
        size = prod(argument.type.shape) * dtype_of(argument.type.element_type).itemsize
        memory = machine.memory(f"arg{i}", size, counted=True)
        buffer = Buffer.whole(memory, argument.type)
        if array is not None:
            buffer.array()[...] = array
        arguments.append(buffer)
    Program(module, machine).run(symbol(kernel), arguments)
    machine.finish()
    return arguments


def _compare(name: str, results: Sequence[tuple[Buffer, Buffer]]) -> DeliveryCheck:
    elements, unwritten, undefined, differing = 0, 0, 0, 0
    for soon, late in results:
        a, b, moved = soon.array(), late.array(), late.move_counts() > 0
        elements += a.size
        unwritten += int(np.count_nonzero(~moved))
        undefined += int(np.count_nonzero((b != b) & (a == a) & moved))
        differing += int(np.count_nonzero((a != b) & ((a == a) | (b == b)) & moved))
    return DeliveryCheck(name, elements, unwritten, undefined, differing)
