"""The functions of a module as Python closures, made once and run often.

Every value of a function has a slot of a frame (a list), every op becomes a closure over slots.
Control flow, index arithmetic and views are the same whatever is simulated; moves and compute are
left to a Machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import called, entry, functions, integers, symbol
from mlir_npu.simulator.buffers import Buffer
from mlir_npu.simulator.errors import SimulationError, faults_of
from mlir_npu.simulator.machine import Machine
from mlir_npu.simulator.steps import Budget, Frame, Step, Steps
from mlir_npu.simulator.values import moves_of, value_function
from mlir_npu.simulator.views import DYNAMIC

ENDS = ("func.return", "scf.yield", "scf.forall.in_parallel")


class Program:
    """The functions of one module on one machine."""

    def __init__(self, module: ir.Operation, machine: Machine):
        self._functions = {symbol(f): f for f in functions(module)}
        self._compiled: dict[str, Callable[[Sequence[Buffer]], None]] = {}
        self._machine = machine
        self._running: list[str] = []
        self.budget = Budget()

    def run(self, name: str, arguments: Sequence[Buffer]) -> None:
        """Call a function of the module. Raises SimulationError."""
        function = self._functions[name]
        if name in self._running:
            raise SimulationError(function, f"recursion: {' calls '.join([*self._running, name])}")
        self._running.append(name)
        if name not in self._compiled:
            with faults_of(function):
                self._compiled[name] = _Compiler(self, self._machine).function(function)
        self._compiled[name](arguments)
        self._running.pop()

    def call(self, op: ir.Operation, arguments: Sequence[Buffer]) -> None:
        """Execute a func.call. Raises SimulationError."""
        if called(op) not in self._functions:
            raise SimulationError(op, f"calls '{called(op)}', which has no body in this module")
        self.run(called(op), arguments)


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
            steps.run(frame)

        return run

    def _slot(self, value: ir.Value) -> int:
        return self._slots.setdefault(value, len(self._slots))

    def _block(self, block: ir.Block) -> tuple[Steps, list[int]]:
        """The steps of a block, and the slots that its terminator yields."""
        steps, yielded = Steps(), []
        for child in block.operations:
            op = child.operation
            if op.name in ENDS:
                yielded = [self._slot(value) for value in op.operands]
            else:
                with faults_of(op):
                    steps.add(op, self._step(op))
        return steps, yielded

    def _step(self, op: ir.Operation) -> Step:
        inputs = [self._slot(value) for value in op.operands]
        outputs = [self._slot(value) for value in op.results]
        structure = _STRUCTURE.get(op.name)
        if structure is not None:
            return structure(self, op, inputs, outputs)
        function = value_function(op, self._machine)
        if function is None:
            raise SimulationError(op, "the simulator does not know this op")
        (result,) = outputs

        def step(frame: Frame) -> None:
            frame[result] = function(*[frame[i] for i in inputs])

        return step

    # structure

    def _call(self, op, inputs, outputs) -> Step:
        if outputs:
            raise SimulationError(op, "calls a function with results; they have to be arguments")
        return lambda frame: self._program.call(op, [frame[i] for i in inputs])

    def _for(self, op, inputs, outputs) -> Step:
        low, high, step, *initial = inputs
        block = op.regions[0].blocks[0]
        counter, *carried = [self._slot(argument) for argument in block.arguments]
        steps, yielded = self._block(block)

        def run(frame: Frame) -> None:
            _copy(frame, initial, carried)
            for value in self._range(op, frame[low], frame[high], frame[step], steps):
                frame[counter] = value
                steps.run(frame)
                _copy(frame, yielded, carried)
            _copy(frame, carried, outputs)

        return run

    def _range(self, op, low: int, high: int, step: int, steps: Steps) -> range:
        if step < 1:
            raise SimulationError(op, f"has the step {step}; it must be positive")
        self._program.budget.spend(op, max(0, -((low - high) // step)), steps)
        return range(low, high, step)

    def _forall(self, op, inputs, outputs) -> Step:
        names = ("staticLowerBound", "staticUpperBound", "staticStep")
        bounds = [integers(op, name) for name in names]
        if inputs or any(DYNAMIC in bound for bound in bounds):
            raise SimulationError(op, "loop bounds must be constants")
        block = op.regions[0].blocks[0]
        counters = [self._slot(argument) for argument in block.arguments]
        steps, _ = self._block(block)

        if min(bounds[2], default=1) < 1:
            raise SimulationError(op, f"has the steps {list(bounds[2])}; they must be positive")
        trips = prod(max(0, -((low - high) // step)) for low, high, step in zip(*bounds))

        def run(frame: Frame) -> None:
            self._program.budget.spend(op, trips, steps)
            for point in itertools.product(*itertools.starmap(range, zip(*bounds))):
                for counter, value in zip(counters, point):
                    frame[counter] = value
                steps.run(frame)

        return run

    def _if(self, op, inputs, outputs) -> Step:
        (condition,) = inputs
        branches = [
            self._block(region.blocks[0]) if len(region.blocks) else (Steps(), [])
            for region in op.regions
        ]

        def run(frame: Frame) -> None:
            steps, yielded = branches[0 if frame[condition] else 1]
            steps.run(frame)
            _copy(frame, yielded, outputs)

        return run

    def _move(self, op, inputs, outputs) -> Step:
        start, (source, target, *low), (token,) = self._machine.move(op), inputs, outputs

        def run(frame: Frame) -> None:
            frame[token] = start(frame[source], frame[target], [frame[i] for i in low])

        return run

    def _wait(self, op, inputs, outputs) -> Step:
        wait = self._machine.wait(op)
        return lambda frame: wait(list(moves_of([frame[i] for i in inputs])))

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
