"""Runs a program for its results, on a machine that is as late as it may be.

Every memory starts as NaN. A move poisons its target when it starts and delivers only when it is
waited for, or when another move needs its bytes; compute that touches them earlier is an error. A
missing move, wait or tile shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import entry, functions, integers, string, symbol
from mlir_npu.simulator.buffers import Buffer, Memory, dtype_of
from mlir_npu.simulator.compute import compute_function
from mlir_npu.simulator.errors import SimulationError
from mlir_npu.simulator.hazards import (
    Access,
    Hazards,
    Token,
    check_overlap,
    compute_accesses,
    may_be_in_place,
)
from mlir_npu.simulator.moves import landing_of
from mlir_npu.simulator.program import Program

LARGEST_INTEGER = 4


def run_function(
    module: ir.Operation,
    name: str,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    machine: FunctionalMachine | None = None,
) -> list[np.ndarray]:
    """Call a function of a staged module. `outputs` give shapes and types and are not read.

    Returns, for each output, how often each of its elements was written by a move, after the
    results have been written to `outputs`. Raises SimulationError.
    """
    (function,) = (f for f in functions(module) if symbol(f) == name)
    types = [argument.type for argument in entry(function).arguments]
    memories = [Memory.holding(f"input {i}", array) for i, array in enumerate(inputs)]
    results = [
        Memory.poisoned(f"output {i}", array.nbytes, counted=True)
        for i, array in enumerate(outputs)
    ]
    given = len(inputs) + len(outputs)
    own = [Memory.poisoned("scratchpad", prod(type_.shape)) for type_ in types[given:]]
    arguments = [Buffer.whole(m, t) for m, t in zip([*memories, *results, *own], types)]
    machine = machine or FunctionalMachine(module)
    Program(module, machine).run(name, arguments)
    machine.finish()
    for array, buffer in zip(inputs, arguments):
        if not np.array_equal(buffer.array(), array, equal_nan=array.dtype.kind == "f"):
            raise SimulationError(function, f"{buffer} is an input, but was written to")
    counts = []
    for array, buffer in zip(outputs, arguments[len(inputs) :]):
        array[...] = buffer.array()
        counts.append(buffer.move_counts().copy())
    return counts


class FunctionalMachine:
    """Executes moves and compute on the data of buffers.

    late: memories start as NaN, and moves deliver as late as they may; else memories start as
    zeros, and moves deliver at once.
    """

    def __init__(self, module: ir.Operation, late: bool = True):
        self._late = late
        self._hazards = Hazards()
        top = module.operation.regions[0].blocks[0].operations
        self._constants = {
            string(op.operation, "sym_name"): np.array(op.attributes["initial_value"])
            for op in top
            if op.operation.name == "memref.global"
        }

    def allocate(self, op: ir.Operation) -> Buffer:
        value = op.results[0]
        if op.name == "memref.get_global":
            name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
            return Buffer.whole(Memory.holding(name, self._constants[name]), value.type)
        empty = Buffer.whole(Memory("", 0), value.type)
        return Buffer.whole(self.memory("", empty.bytes), value.type, 0, value)

    def memory(self, name: str, size: int, counted: bool = False) -> Memory:
        """A memory as it is before a program runs."""
        memory = Memory.poisoned(name, size, counted)
        if not self._late:
            memory.data[...] = 0
        return memory

    def check_place(self, op: ir.Operation, buffer: Buffer) -> None:
        """Results do not depend on where a buffer is."""

    def move(self, op: ir.Operation) -> Callable[[Buffer, Buffer, Sequence[int]], Token]:
        order = integers(op, "permutation")
        pad = op.attributes["pad_value"].value if "pad_value" in op.attributes else None

        def start(source: Buffer, target: Buffer, low: Sequence[int]) -> Token:
            landing = landing_of(op, source, target, low, order)
            check_overlap(op, (source, target), (False,))
            for buffer, writes in ((source, False), (target, True)):
                for access in self._hazards.conflicts(buffer, writes):
                    self._deliver(access.token)
            token = _Pending(op, source, target)
            token.parts = (source.permuted(order), landing, pad)
            if self._late:
                _poison(target.array())
            else:
                self._deliver(token)
            self._hazards.start(token)
            self._hazards.add(Access(source, False, token=token))
            self._hazards.add(Access(target, True, token=token))
            return token

        return start

    def no_move(self) -> Token:
        return _Pending(None)

    def wait(self, op: ir.Operation) -> Callable[[Sequence[Token]], None]:
        def wait(tokens: Sequence[Token]) -> None:
            for token in tokens:
                self._hazards.wait(op, token)
                self._deliver(token)

        return wait

    def compute(self, op: ir.Operation) -> Callable[[Sequence[Buffer]], None]:
        if op.name == "npu.barrier":
            return self._barrier
        function, in_place = compute_function(op), may_be_in_place(op)

        def compute(buffers: Sequence[Buffer]) -> None:
            check_overlap(op, buffers, in_place)
            for buffer, writes in compute_accesses(buffers):
                for access in self._hazards.conflicts(buffer, writes):
                    self._hazards.check_race(op, buffer, access)
            function([buffer.array() for buffer in buffers])

        return compute

    def _barrier(self, buffers: Sequence[Buffer]) -> None:
        for token in self._hazards.barrier():
            self._deliver(token)

    def finish(self) -> None:
        """Raises SimulationError if a move was not waited for."""
        self._hazards.finish()

    def _deliver(self, token: Token) -> None:
        if token.parts is None:
            return
        (moved, landing, pad), token.parts = token.parts, None
        if pad is not None:
            token.target.array()[...] = pad
        landing.array()[...] = moved.array()
        token.target.count_moves()


class _Pending(Token):
    """A move whose data may still have to be delivered: (source, landing, pad value)."""

    parts: tuple[Buffer, Buffer, float | int | None] | None = None


def small_integers(rng: np.random.Generator, type_: ir.Type) -> np.ndarray:
    """Sums of products of these are exact in any order."""
    dtype = dtype_of(type_.element_type)
    if dtype == np.bool_:
        return rng.integers(0, 2, type_.shape).astype(dtype)
    return rng.integers(-LARGEST_INTEGER, LARGEST_INTEGER + 1, type_.shape).astype(dtype)


def _poison(array: np.ndarray) -> None:
    """A value that no result may depend on."""
    if array.dtype.kind == "f":
        array[...] = np.nan
    elif array.dtype.kind == "i":
        array[...] = np.iinfo(array.dtype).min
