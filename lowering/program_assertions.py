"""What a graph asserts of tensors -> values that a program compares in every call.

`assert y.max() < 5` is a node without a result. It becomes a result, which is true where the
assertion holds, as it did in the recorded call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch import fx

from mlir_npu.lowering.program_events import Place, ReadEvent, place_of

_OF_CONDITIONS = {"_check", "_assert_async", "_assert_scalar"}
_OF_SIZES = {"_check_is_size"}
_OF_RANGES = {"sym_constrain_range", "sym_constrain_range_for_size"}

Comparison = tuple[Callable, float]


def take_assertions(graph: fx.Graph) -> list[tuple[ReadEvent, fx.Node]]:
    """Remove the graph's assertions. Returned is what they come to: a check of a tensor that stands
    for a node, with this node.

    Numbers in the graph are tensors already.
    """
    taken: list[tuple[ReadEvent, fx.Node]] = []
    for node in list(graph.nodes):
        comparisons = _comparisons(node)
        if comparisons is None:
            continue
        subject = node.args[0]
        if isinstance(subject, fx.Node):
            place = _place(node, subject)
            with graph.inserting_before(node):
                taken += [(_holds(place), _compare(graph, subject, c)) for c in comparisons]
        graph.erase_node(node)
    return taken


def _comparisons(node: fx.Node) -> list[Comparison] | None:
    """What is asserted of the first argument of a node; None if it is no assertion."""
    if node.op != "call_function" or node.users:
        return None
    name = getattr(node.target, "__name__", "").partition(".")[0]
    if name in _OF_CONDITIONS:
        return [(torch.ne, 0)]
    if name in _OF_SIZES:
        return [(operator.ge, 0)]
    if name in _OF_RANGES:
        bounds = ((operator.ge, node.kwargs.get("min")), (operator.le, node.kwargs.get("max")))
        return [(compare, bound) for compare, bound in bounds if bound is not None]
    return None


def _compare(graph: fx.Graph, subject: fx.Node, comparison: Comparison) -> fx.Node:
    compare, bound = comparison
    node = graph.call_function(compare, (subject, bound))
    node.meta["stack_trace"] = subject.meta.get("stack_trace")
    return node


def _holds(place: Place) -> ReadEvent:
    return ReadEvent(torch.tensor(True), True, place, decides=True)


def _place(node: fx.Node, subject: fx.Node) -> Place:
    own = place_of(node)
    return own if own.location else place_of(subject)
