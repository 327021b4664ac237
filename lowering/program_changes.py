"""Variables from outside of a call that the call changes. A program keeps what it computed of them,
so people are told."""

from __future__ import annotations

import collections
import dis
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mlir_npu.lowering.program_events import Place, PythonBetween, line_of
from mlir_npu.lowering.roles import readable
from mlir_npu.lowering.source_location import TORCH

_SIMPLE = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class _Variables:
    """table: where they are; before: what was in it."""

    label: str
    table: Mapping[str, Any]
    before: Mapping[str, Any]


class ChangesOutside:
    """Watches what Dynamo's frames and guards name while a call is recorded."""

    def __init__(self) -> None:
        self._codes: dict[types.CodeType, None] = {}
        self._watched: dict[int, _Variables] = {}

    def enter(self, frame: Any) -> None:
        """Before Dynamo compiles this frame."""
        code = frame.f_code
        if code.co_filename.startswith(TORCH):
            return
        self._codes[code] = None
        self._watch("", frame.f_globals)
        for name, cell in zip(code.co_freevars, frame.closure or ()):
            self._watch("", _Cell(name, cell), id(cell))

    def look_at(self, entries: Sequence[Any]) -> None:
        """The guards of the graph that was made of the frame."""
        for entry in entries:
            if entry.has_value and _has_attributes(entry.value):
                name = re.sub(r"^G\['([^']*)'\]", r"\1", readable(entry.name))
                self._watch(f"{name}.", vars(entry.value))

    def _watch(self, label: str, table: Mapping[str, Any], key: int | None = None) -> None:
        key = id(table) if key is None else key
        if key not in self._watched:
            self._watched[key] = _Variables(label, table, _contents(table))

    def tell(self) -> list[PythonBetween]:
        """At the end of the call. Lets go of all that it knows."""
        told = list(self._changes())
        self._codes.clear()
        self._watched.clear()
        return told

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
        return line_of(code.co_filename, line)


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
