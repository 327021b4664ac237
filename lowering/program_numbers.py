"""Which of the numbers that Python read of tensors a program has to compare in every call.

All that may have decided something: what Python did with a number is not known. Left out are those
that a statement such as `print(loss.item())` takes, if no later graph was made for that number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from mlir_npu.lowering.program_events import (
    CallEvent,
    Event,
    GraphEvent,
    Place,
    PythonBetween,
    ReadEvent,
    place_of,
)
from mlir_npu.lowering.program_prints import only_tells

_UNCHECKED = (
    "a number goes to Python",
    "it is only told to people, so it is not checked, and what is told is not repeated",
)


def settle_numbers(
    events: Sequence[Event], guarded: Iterable[Any]
) -> tuple[list[Event], list[PythonBetween]]:
    """The events with each number once, marked with whether it decides; and those that do not.

    guarded: numbers that graphs were made for.
    """
    taken = [*guarded, *_arguments(events)]
    floats = {id(number) for number in taken if type(number) is float}
    integers = {number for number in taken if type(number) is int}
    makers = _scalar_tensors(events)
    deciding = {
        id(event.tensor)
        for event in events
        if isinstance(event, ReadEvent)
        and (
            id(event.number) in floats
            or (type(event.number) is int and event.number in integers)
            or (event.listed is None and _decides_alone(event, makers))
        )
    }
    settled, left, seen = [], [], set()
    for event in events:
        if isinstance(event, ReadEvent):
            if id(event.tensor) in seen:
                continue
            seen.add(id(event.tensor))
            place = _place_of_reading(event, makers)
            decides = id(event.tensor) in deciding
            if not decides and event.listed is None:
                left.append(PythonBetween(place.location, place.line, *_UNCHECKED))
            event = dataclasses.replace(event, place=place, decides=decides)
        settled.append(event)
    return settled, left


def _decides_alone(event: ReadEvent, makers: Mapping[int, fx.Node]) -> bool:
    """Whether Python may go another way for another number."""
    if type(event.number) is bool:
        return True
    return not only_tells(_place_of_taking(event, makers).location)


def _arguments(events: Iterable[Event]) -> list[float]:
    """Numbers that PyTorch was called with between graphs."""
    leaves = [
        leaf
        for event in events
        if isinstance(event, CallEvent)
        for leaf in pytree.tree_leaves((event.arguments, dict(event.keywords)))
    ]
    return [leaf for leaf in leaves if type(leaf) is float]


def _scalar_tensors(events: Iterable[Event]) -> dict[int, fx.Node]:
    """Nodes by which graphs return numbers as tensors, by the ids of these."""
    return {
        id(output): node
        for event in events
        if isinstance(event, GraphEvent)
        for output, node in zip(event.outputs, event.graph_module.graph.output_node().args[0])
        if isinstance(node, fx.Node) and node.target is torch.scalar_tensor
    }


def _place_of_taking(event: ReadEvent, makers: Mapping[int, fx.Node]) -> Place:
    """Where Python got the number. Compiled frames do not know their line; their graphs do."""
    maker = makers.get(id(event.tensor))
    return event.place if maker is None else place_of(maker)


def _place_of_reading(event: ReadEvent, makers: Mapping[int, fx.Node]) -> Place:
    """Where the program reads it of a tensor."""
    maker = makers.get(id(event.tensor))
    number = maker.args[0] if maker is not None else None
    return place_of(number) if isinstance(number, fx.Node) else event.place
