"""What only Python knows while a model is called, and graphs are made for all the same: numbers in
variables behind a graph break, and variables from outside of the call that the call changes.

A program keeps what it computed of them, so people are told.
"""

from __future__ import annotations

import collections
import dis
import linecache
import re
import types
from collections.abc import Iterator, Mapping, Sequence
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
)
from mlir_npu.lowering.roles import readable
from mlir_npu.lowering.source_location import TORCH

_RESUMED = "torch_dynamo_resume_in_"  # functions that Dynamo makes of what is behind a break
_EQUAL = ("EQUALS_MATCH", "CONSTANT_MATCH")
_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
_ARITHMETIC = ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "remainder")
_TAKE_VALUES = {
    *(prefix + name for name in _ARITHMETIC for prefix in ("", "r", "i")),
    *("eq", "ne", "lt", "le", "gt", "ge", "where", "masked_fill", "clamp", "fill"),
    *("tensor", "as_tensor", "as_tensor_fullprec", "scalar_tensor"),
}


def numbers_of_python(event: CallEvent, code: types.CodeType | None) -> Iterator[PythonBetween]:
    """Those that a call of PyTorch between graphs takes, and that are not written in the code.
    Integers that are sizes or dimensions are as usual as numbers of the code."""
    name = getattr(event.function, "__name__", "").strip("_")
    arguments = event.arguments[1:] if name == "full" else event.arguments
    kinds = (int, float) if name == "full" or name in _TAKE_VALUES else (float,)
    leaves = pytree.tree_leaves((arguments, dict(event.keywords)))
    sizes = _sizes(leaves)
    for number in leaves:
        if type(number) not in kinds or number in _constants(code):
            continue
        if type(number) is float or number not in sizes:
            yield _stays(number, event.place)


def _stays(number: float, place: Place, called: str = "") -> PythonBetween:
    text = f"{number:g}" if type(number) is float else str(number)
    told = f"the number {text}{called}, which Python computed, is part of the program"
    return PythonBetween(place.location, place.line, told, "it stays as it is")


@dataclass(frozen=True)
class _Variables:
    """table: where they are; before: what was in it."""

    label: str
    table: Mapping[str, Any]
    before: Mapping[str, Any]


class PythonState:
    """What Dynamo's frames and guards tell of Python while a call is recorded."""

    def __init__(self) -> None:
        self._code: types.CodeType | None = None
        self._codes: dict[types.CodeType, None] = {}
        self._watched: dict[int, _Variables] = {}
        self._numbers: list[tuple[types.CodeType, str, float]] = []

    def enter(self, frame: Any) -> None:
        """Before Dynamo compiles this frame."""
        self._code = code = frame.f_code
        if code.co_filename.startswith(TORCH):
            return
        self._codes[code] = None
        self._watch("", frame.f_globals)
        for name, cell in zip(code.co_freevars, frame.closure or ()):
            self._watch("", _Cell(name, cell), id(cell))

    def look_at(self, entries: Sequence[Any]) -> None:
        """The guards of the graph that was made of the frame."""
        for entry in entries:
            if not entry.has_value or self._code is None:
                continue
            if _has_attributes(entry.value):
                name = re.sub(r"^G\['([^']*)'\]", r"\1", readable(entry.name))
                self._watch(f"{name}.", vars(entry.value))
            elif (
                type(entry.value) in (int, float)
                and entry.guard_type in _EQUAL
                and entry.name.isidentifier()
                and self._code.co_name.startswith(_RESUMED)
            ):
                self._numbers.append((self._code, entry.name, entry.value))

    def _watch(self, label: str, table: Mapping[str, Any], key: int | None = None) -> None:
        key = id(table) if key is None else key
        if key not in self._watched:
            self._watched[key] = _Variables(label, table, _contents(table))

    def tell(self, events: Sequence[Event]) -> list[PythonBetween]:
        """At the end of the call. Lets go of all that it knows."""
        told = [*self._numbers_behind_breaks(events), *self._changes()]
        self._code = None
        for known in (self._codes, self._watched, self._numbers):
            known.clear()
        return told

    def _numbers_behind_breaks(self, events: Sequence[Event]) -> Iterator[PythonBetween]:
        read = [event.number for event in events if isinstance(event, ReadEvent)]
        floats = {id(number) for number in read if type(number) is float}
        integers = {number for number in read if type(number) is int}
        integers |= _sizes([t for e in events if isinstance(e, GraphEvent) for t in e.inputs])
        integers |= _sizes([t for e in events if isinstance(e, GraphEvent) for t in e.outputs])
        for code, name, number in self._numbers:
            known = id(number) in floats if type(number) is float else number in integers
            if known or number in _constants(code):
                continue
            line = int(code.co_name.rpartition("_at_")[2])
            called = "" if name.startswith("___") else f" ({name})"
            yield _stays(number, _line_of(code, line), called)

    def _changes(self) -> Iterator[PythonBetween]:
        for variables in self._watched.values():
            before, after = variables.before, _contents(variables.table)
            for name in {**before, **after}:
                if not _same(before.get(name), after.get(name)):
                    place = self._place_of_change(name)
                    yield PythonBetween(
                        place.location,
                        place.line,
                        f"the call changes {variables.label}{name}",
                        "a program does not repeat it, and keeps what it computed with it",
                    )

    def _place_of_change(self, name: str) -> Place:
        uses = [
            (not one.opname.startswith("STORE"), code, one.positions.lineno)
            for code in self._codes
            for one in dis.get_instructions(code)
            if one.argval == name and one.positions and one.positions.lineno
        ]
        if not uses:
            return Place()
        _, code, line = min(uses, key=lambda use: use[0])
        return _line_of(code, line)


class _Cell(dict):
    """A variable of a closure, as the table that it is alone in."""

    def __init__(self, name: str, cell: types.CellType) -> None:
        self._name, self._cell = name, cell

    def items(self) -> Any:
        try:
            return [(self._name, self._cell.cell_contents)]
        except ValueError:  # it has no value yet
            return []


def _contents(table: Mapping[str, Any]) -> dict[str, Any]:
    """Of variables that hold numbers, text and collections, which are copied."""
    found = {}
    for name, value in list(table.items()):
        if name.startswith("__"):
            continue
        if type(value) in _SIMPLE:
            found[name] = value
        elif isinstance(value, (list, tuple, collections.deque)):
            found[name] = tuple(value)
        elif isinstance(value, dict):
            found[name] = (*value.keys(), *value.values())
        elif isinstance(value, set):
            found[name] = frozenset(value)
    return found


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if type(one) is tuple:
        return len(one) == len(other) and all(map(_same, one, other))
    return one is other or (type(one) in (*_SIMPLE, frozenset) and one == other)


def _has_attributes(value: Any) -> bool:
    """Whether it is an object or Python module, of whoever wrote the model."""
    if isinstance(value, types.ModuleType):
        return not value.__name__.startswith("torch")
    known = (type, types.FunctionType, torch.nn.Module, torch.Tensor)
    of_torch = type(value).__module__.startswith("torch")
    return hasattr(value, "__dict__") and not isinstance(value, known) and not of_torch


def _sizes(values: Sequence[Any]) -> set[int]:
    return {size for value in values if isinstance(value, torch.Tensor) for size in value.shape}


def _constants(code: types.CodeType | None) -> list[Any]:
    return pytree.tree_leaves(code.co_consts) if code is not None else []


def _line_of(code: types.CodeType, line: int) -> Place:
    text = linecache.getline(code.co_filename, line).strip()
    return Place(f"{code.co_filename}:{line}", text)
