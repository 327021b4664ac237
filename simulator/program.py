"""The functions of a module as Python closures, made once and run often.

Every value of a function has a slot of a frame (a list), every op becomes a closure over slots.
Control flow, index arithmetic and views are the same whatever is simulated; moves and compute are
left to a Machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import called, entry, functions, integers, symbol
from mlir_npu.simulator.buffers import Buffer, UnknownType
from mlir_npu.simulator.errors import SimulationError
from mlir_npu.simulator.indices import index_function
from mlir_npu.simulator.views import (
    DYNAMIC,
    cast_function,
    reshape_function,
    subview_function,
    view_function,
)

Frame = list
Step = Callable[[Frame], None]
ENDS = ("func.return", "scf.yield", "scf.forall.in_parallel")
SAME_BUFFER = ("memref.memory_space_cast", "memref.cast")
RESHAPES = ("memref.collapse_shape", "memref.expand_shape")


class Machine(Protocol):
    """What executes moves and compute. Each method prepares an op once."""

    def allocate(self, op: ir.Operation) -> Buffer:
        """The buffer of a memref.alloc or memref.get_global."""

    def move(self, op: ir.Operation) -> Callable[[Buffer, Buffer, Sequence[int]], Any]:
        """dma_start, as a function of source, target and `low` that returns a token."""

    def no_move(self) -> Any:
        """The token of dma_none."""

    def wait(self, op: ir.Operation) -> Callable[[Sequence[Any]], None]:
        """dma_wait, as a function of the tokens."""

    def compute(self, op: ir.Operation) -> Callable[[Sequence[Buffer]], None]:
        """Any other npu op, as a function of its buffers."""


class Program:
    """The functions of one module on one machine."""

    def __init__(self, module: ir.Operation, machine: Machine):
        self._functions = {symbol(f): f for f in functions(module)}
        self._compiled: dict[str, Callable[[Sequence[Buffer]], None]] = {}
        self._machine = machine

    def run(self, name: str, arguments: Sequence[Buffer]) -> None:
        """Call a function. Raises SimulationError."""
        if name not in self._compiled:
            self._compiled[name] = _Compiler(self, self._machine).function(self._functions[name])
        self._compiled[name](arguments)


class _Compiler:
    """Compiles one function."""

    def __init__(self, program: Program, machine: Machine):
        self._program, self._machine = program, machine
        self._slots: dict[ir.Value, int] = {}

    def function(self, function: ir.Operation) -> Callable[[Sequence[Buffer]], None]:
        parameters = [self._slot(argument) for argument in entry(function).arguments]
        steps, _ = self._block(entry(function))

        def run(arguments: Sequence[Buffer]) -> None:
            if len(arguments) != len(parameters):
                raise SimulationError(
                    function, f"takes {len(parameters)} arguments, got {len(arguments)}"
                )
            frame: Frame = [None] * len(self._slots)
            for parameter, argument in zip(parameters, arguments):
                frame[parameter] = argument
            for step in steps:
                step(frame)

        return run

    def _slot(self, value: ir.Value) -> int:
        return self._slots.setdefault(value, len(self._slots))

    def _block(self, block: ir.Block) -> tuple[list[Step], list[int]]:
        """The steps of a block, and the slots that its terminator yields."""
        steps, yielded = [], []
        for child in block.operations:
            op = child.operation
            if op.name in ENDS:
                yielded = [self._slot(value) for value in op.operands]
            else:
                steps.append(self._step(op))
        return steps, yielded

    def _step(self, op: ir.Operation) -> Step:
        inputs = [self._slot(value) for value in op.operands]
        outputs = [self._slot(value) for value in op.results]
        structure = _STRUCTURE.get(op.name)
        if structure is not None:
            return structure(self, op, inputs, outputs)
        try:
            function = self._value_function(op)
        except UnknownType as error:
            raise SimulationError(op, str(error)) from None
        if function is None:
            raise SimulationError(op, "the simulator does not know this op")
        (result,) = outputs

        def step(frame: Frame) -> None:
            frame[result] = function(*[frame[i] for i in inputs])

        return step

    def _value_function(self, op: ir.Operation) -> Callable | None:
        """The result of an op without regions as a function of its operands."""
        if op.name == "arith.constant":
            value = getattr(op.attributes["value"], "value", None)
            return lambda: value
        if op.name in ("memref.alloc", "memref.get_global"):
            return lambda: self._machine.allocate(op)
        if op.name == "npu.dma_none":
            return self._machine.no_move
        if op.name in SAME_BUFFER:
            return cast_function(op)
        if op.name == "memref.view":
            return view_function(op)
        if op.name == "memref.subview":
            return subview_function(op)
        if op.name in RESHAPES:
            return reshape_function(op)
        return index_function(op)

    # structure

    def _call(self, op, inputs, outputs) -> Step:
        name = called(op)
        return lambda frame: self._program.run(name, [frame[i] for i in inputs])

    def _for(self, op, inputs, outputs) -> Step:
        low, high, step, *initial = inputs
        block = op.regions[0].blocks[0]
        counter, *carried = [self._slot(argument) for argument in block.arguments]
        steps, yielded = self._block(block)

        def run(frame: Frame) -> None:
            _copy(frame, initial, carried)
            for value in range(frame[low], frame[high], frame[step]):
                frame[counter] = value
                for one in steps:
                    one(frame)
                _copy(frame, yielded, carried)
            _copy(frame, carried, outputs)

        return run

    def _forall(self, op, inputs, outputs) -> Step:
        names = ("staticLowerBound", "staticUpperBound", "staticStep")
        bounds = [integers(op, name) for name in names]
        if inputs or any(DYNAMIC in bound for bound in bounds):
            raise SimulationError(op, "loop bounds must be constants")
        block = op.regions[0].blocks[0]
        counters = [self._slot(argument) for argument in block.arguments]
        steps, _ = self._block(block)

        def run(frame: Frame) -> None:
            for point in itertools.product(*itertools.starmap(range, zip(*bounds))):
                for counter, value in zip(counters, point):
                    frame[counter] = value
                for one in steps:
                    one(frame)

        return run

    def _if(self, op, inputs, outputs) -> Step:
        (condition,) = inputs
        branches = [self._block(region.blocks[0]) if len(region.blocks) else ([], [])
                    for region in op.regions]  # fmt: skip

        def run(frame: Frame) -> None:
            steps, yielded = branches[0 if frame[condition] else 1]
            for one in steps:
                one(frame)
            _copy(frame, yielded, outputs)

        return run

    def _move(self, op, inputs, outputs) -> Step:
        start, (source, target, *low), (token,) = self._machine.move(op), inputs, outputs

        def run(frame: Frame) -> None:
            frame[token] = start(frame[source], frame[target], [frame[i] for i in low])

        return run

    def _wait(self, op, inputs, outputs) -> Step:
        wait = self._machine.wait(op)
        return lambda frame: wait([frame[i] for i in inputs])

    def _compute(self, op, inputs, outputs) -> Step:
        compute = self._machine.compute(op)
        return lambda frame: compute([frame[i] for i in inputs])


_STRUCTURE = {
    "func.call": _Compiler._call,
    "scf.for": _Compiler._for,
    "scf.forall": _Compiler._forall,
    "scf.if": _Compiler._if,
    "npu.dma_start": _Compiler._move,
    "npu.dma_wait": _Compiler._wait,
} | {
    f"npu.{name}": _Compiler._compute
    for name in (
        *("fill", "conv2d", "depthwise_conv2d", "matmul", "batch_matmul", "pool2d", "eltwise"),
        *("reduce", "drain", "winograd_input", "winograd_output", "barrier"),
    )
}


def _copy(frame: Frame, sources: Sequence[int], targets: Sequence[int]) -> None:
    values = [frame[i] for i in sources]
    for target, value in zip(targets, values):
        frame[target] = value
