"""Values that only Python knows while a model is called, and that graphs are made for all the same:
results of uncompiled calls, and what depends on them.

A program keeps what it computed of them, so people are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.lowering.program_events import (
    CallEvent,
    Event,
    GraphEvent,
    Place,
    PythonBetween,
    ReadEvent,
    line_of,
    place_of,
)
from mlir_npu.lowering.program_frames import given_to_module, user_sites
from mlir_npu.lowering.program_origins import (
    Origin,
    Site,
    expressions_at,
    literals,
    origin_of,
    variable,
)
from mlir_npu.lowering.source_location import TORCH

_RESUMED = "torch_dynamo_resume_in_"  # functions that Dynamo makes of what is behind a break
_STACK = "___stack"  # their parameters that are no variables; the last is what the break returned
_EQUAL = ("EQUALS_MATCH", "CONSTANT_MATCH")
_NUMBERS = (bool, int, float)
_RANDOM = "random_value_"  # what Dynamo calls numbers of Python's generator
_TO_TENSOR = "as_tensor_fullprec"  # by which Dynamo's own code passes a number to a graph


@dataclass(frozen=True)
class _Value:
    """A value whose origin is a call that was not compiled."""

    value: Any
    origin: Origin
    place: Place
    called: str = ""


@dataclass(frozen=True)
class _Frame:
    """sites: of the frame and its callers; returned: the parameter that holds what the uncompiled
    call before it returned."""

    sites: tuple[Site, ...]
    returned: str | None


class PythonValues:
    """What Dynamo's frames and guards, and calls between graphs, tell of Python."""

    def __init__(self) -> None:
        self._frame: _Frame | None = None
        self._breaks: dict[str, set[int]] = {}  # lines by file
        self._found: list[_Value] = []

    def enter(self, frame: Any) -> None:
        """Before Dynamo compiles this frame."""
        code, self._frame = frame.f_code, None
        if code.co_filename.startswith(TORCH):
            return
        breaks = self._breaks.setdefault(code.co_filename, set())
        returned, line = None, code.co_firstlineno
        if code.co_name.startswith(_RESUMED):
            line = int(code.co_name.rpartition("_at_")[2])
            breaks.add(line)
            stack = [name for name in frame.f_locals if name.startswith(_STACK)]
            returned = max(stack, key=lambda name: (len(name), name), default=None)
        own = Site(code.co_filename, line, uncompiled=breaks)
        self._frame = _Frame((own, *user_sites(self._breaks)), returned)

    def look_at(self, entries: Sequence[Any]) -> None:
        """The guards of the graph that was made of the frame."""
        for entry in entries:
            if self._frame is None or not entry.has_value or entry.guard_type not in _EQUAL:
                continue
            name = re.match(r"[A-Za-z_]\w*", entry.name)
            if name is None or not _is_simple(entry.value):
                continue
            origin = self._origin(self._frame, name[0], entry.value, attribute="." in entry.name)
            if origin is not None:
                called = "" if name[0].startswith(_STACK) else f" ({entry.name})"
                place = line_of(origin.file, origin.lines[0])
                self._found.append(_Value(entry.value, origin, place, called))

    def look_at_call(self, event: CallEvent) -> None:
        """A call of PyTorch between graphs, while it runs."""
        if getattr(event.function, "__name__", "").strip("_") == _TO_TENSOR:
            return
        sites = user_sites(self._breaks)
        if not sites:
            return
        given = given_to_module()  # its other numbers are its own attributes
        for value, expressions in _given(event, expressions_at(sites[0])):
            if type(value) not in _NUMBERS or value in literals(expressions):
                continue
            if given is not None and not any(value is one for one in given):
                continue
            origin = origin_of(sites, expressions)
            if origin is not None:
                self._found.append(_Value(value, origin, event.place))

    def tell(self, events: Sequence[Event]) -> list[PythonBetween]:
        """At the end of the call. Lets go of all that it knows."""
        reads = [event for event in events if isinstance(event, ReadEvent)]
        told = [_stays(v.value, v.place, v.called) for v in self._found if not _is_read(v, reads)]
        graphs = [event for event in events if isinstance(event, GraphEvent)]
        told += [one for event in graphs for one in _random_numbers(event)]
        self._frame = None
        self._breaks.clear()
        self._found.clear()
        return list(dict.fromkeys(told))

    def _origin(self, frame: _Frame, name: str, value: Any, *, attribute: bool) -> Origin | None:
        site = frame.sites[0]
        if not name.startswith(_STACK):
            return origin_of(frame.sites, variable(name))
        statement = expressions_at(Site(site.file, site.line))
        if name != frame.returned and (attribute or value in literals(statement)):
            return None
        lines = range(site.line, site.line + 1)
        return Origin(site.file, lines, lines)


def _is_simple(value: Any) -> bool:
    return value is None or type(value) in (*_NUMBERS, str)


def _given(event: CallEvent, expressions: list) -> Iterator[tuple[Any, list]]:
    """What a call takes, each with the expressions that it may be of."""
    taken = [*event.arguments, *event.keywords.values()]
    if len(expressions) == len(taken) + 1 and not isinstance(
        event.function, type(torch.Tensor.add)
    ):
        expressions = expressions[1:]  # the module that the function is in
    if getattr(event.function, "__name__", "").startswith("__r"):
        expressions = expressions[::-1]
    apart = len(expressions) == len(taken)
    for index, argument in enumerate(taken):
        for leaf in pytree.tree_leaves(argument):
            yield leaf, [expressions[index]] if apart else expressions


def _is_read(found: _Value, reads: Sequence[ReadEvent]) -> bool:
    """Whether it is the number that a tensor held, which programs compare."""
    if type(found.value) is float:
        return any(read.number is found.value for read in reads)
    same = (read for read in reads if read.number == found.value)
    return any(_may_return(found.origin, read.place) for read in same)


def _may_return(origin: Origin, read: Place) -> bool:
    """Whether the call returns what was read there: it is the call, or in what it calls."""
    file, _, line = (read.location or ":0").rpartition(":")
    if file != origin.file or int(line) in origin.lines:
        return True
    return int(line) not in origin.around


def _random_numbers(event: GraphEvent) -> Iterator[PythonBetween]:
    """Numbers of Python's generator that a graph takes."""
    nodes = event.graph_module.graph.find_nodes(op="placeholder")
    for node, source, value in zip(nodes, event.sources, event.inputs, strict=True):
        if source.startswith(_RANDOM):
            place = next((place_of(user) for user in node.users), Place())
            yield _stays(value.item() if isinstance(value, torch.Tensor) else value, place)


def _stays(value: Any, place: Place, called: str = "") -> PythonBetween:
    kind = "number" if type(value) in (int, float) else "value"
    text = f"{value:g}" if type(value) is float else repr(value)
    told = f"the {kind} {text}{called}, which Python computed, is part of the program"
    return PythonBetween(place.location, place.line, told, "it stays as it is")
