"""Host parts of which LLVM takes most calls: the others run in eager, in between.

The part is cut as a graph is cut into regions and host parts: as few pieces as possible, in an
order that keeps effects and shared memory. A piece of one call stays with eager, which makes it as
fast.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import fx

from mlir_npu.lowering.cut import Piece, cut
from mlir_npu.lowering.fallback.eager import compile_host_eager
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.stages import assign_stages
from mlir_npu.lowering.units import UnitGraph

# Calls of a piece that are worth a call of compiled code.
LEAST_CALLS = 2

Compile = Callable[[Part], Callable]


@dataclass(frozen=True)
class Step:
    """A piece: what it is called with, what it makes, and values that nobody needs behind it."""

    call: Callable
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dead: tuple[str, ...]


def compile_in_pieces(
    part: Part, refused: Mapping[str, str], compile_llvm: Compile
) -> Callable | None:
    """A callable for the part; `refused` has the names of calls that LLVM does not take.

    None if nothing is left that is worth compiling. Whatever `compile_llvm` raises, it raises.
    """
    nodes = {node.name: node for node in part.graph_module.graph.nodes}
    if not refused.keys() <= nodes.keys():
        return None  # a call that none of the part's own stands for
    reasons = {nodes[name]: reason for name, reason in refused.items()}
    while True:
        graph = UnitGraph(part.graph_module, reasons)
        stages = assign_stages(graph.units)
        small = _small_pieces(graph, stages)
        if not small:
            break
        reasons = reasons | small
    if not any(graph.units.on_npu):
        return None
    pieces, results = cut(graph, stages)
    calls = [_compile(part, number, piece, compile_llvm) for number, piece in enumerate(pieces)]
    return _sequence(part, pieces, calls, results)


def _small_pieces(graph: UnitGraph, stages: Sequence[int]) -> dict[fx.Node, str]:
    by_stage: dict[int, list[fx.Node]] = defaultdict(list)
    for unit, stage in enumerate(stages):
        if graph.units.on_npu[unit]:
            by_stage[stage].append(graph.members[unit][0])
    return {
        call: "a call alone is as fast in eager"
        for calls in by_stage.values()
        if len(calls) < LEAST_CALLS
        for call in calls
    }


def _compile(part: Part, number: int, piece: Piece, compile_llvm: Compile) -> Callable:
    calls = [n for n in piece.graph_module.graph.nodes if n.op == "call_function"]
    own = Part(
        f"{part.name}_{number}",
        "host",
        piece.graph_module,
        piece.inputs,
        piece.outputs,
        macs=0,
        conv_macs=0,
        node_count=sum(node.target is not operator.getitem for node in calls),
    )
    return compile_llvm(own) if piece.stage % 2 else compile_host_eager(own)


def _sequence(
    part: Part, pieces: Sequence[Piece], calls: Sequence[Callable], results: Sequence
) -> Callable:
    last = dict.fromkeys(part.inputs, -1)
    for number, piece in enumerate(pieces):
        last |= dict.fromkeys((*piece.inputs, *piece.outputs), number)
    kept = {result for result in results if isinstance(result, str)}
    steps = []
    for number, (piece, call) in enumerate(zip(pieces, calls, strict=True)):
        dead = tuple(n for n, step in last.items() if step == number and n not in kept)
        steps.append(Step(call, piece.inputs, piece.outputs, dead))

    return PieceCalls(part.inputs, tuple(steps), tuple(results))


@dataclass(frozen=True)
class PieceCalls:
    """Calls the steps in order."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[str | int | float | bool | None, ...]

    def __call__(self, *arguments):
        values = dict(zip(self.inputs, arguments, strict=True))
        for step in self.steps:
            made = step.call(*[values[name] for name in step.inputs])
            values.update(zip(step.outputs, made, strict=True))
            for name in step.dead:
                del values[name]
        return tuple(values[r] if isinstance(r, str) else r for r in self.results)
