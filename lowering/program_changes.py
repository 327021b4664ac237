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

_OF_DYNAMO = ("__", "torch_dynamo_resume_in_", "_is_torch_compile")  # names that it makes
_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
_NONE = (None, None)


@dataclass(frozen=True)
class _Variables:
    """table: where they are; before: what was in it, and what that held; owner: the class of the
    object that they are of."""

    label: str
    table: Mapping[str, Any]
    before: Mapping[str, tuple[Any, Any]]
    owner: type | None = None


class ChangesOutside:
    """Watches what Dynamo's frames and guards name while a call is recorded."""

    def __init__(self, modules: Mapping[str, torch.nn.Module]) -> None:
        """modules: by the prefix of their names; their attributes are watched from now on."""
        self._codes: dict[types.CodeType, None] = {}
        self._watched: dict[int, _Variables] = {}
        for prefix, root in modules.items():
            for path, module in root.named_modules():
                label = f"{prefix}{path}".rstrip(".")
                self._watch(f"{label}." if label else "", vars(module), owner=type(module))

    def enter(self, frame: Any) -> None:
        """Before Dynamo compiles this frame."""
        code = frame.f_code
        if code.co_filename.startswith(TORCH):
            return
        self._codes[code] = None
        self._watch("", frame.f_globals)
        for name, cell in zip(code.co_freevars, frame.closure or ()):
            self._watch("", _Cell(name, cell), key=id(cell))

    def look_at(self, entries: Sequence[Any]) -> None:
        """The guards of the graph that was made of the frame."""
        for entry in entries:
            if entry.has_value and _has_attributes(entry.value):
                name = re.sub(r"^G\['([^']*)'\]", r"\1", readable(entry.name))
                self._watch(f"{name}.", vars(entry.value), owner=type(entry.value))

    def _watch(
        self,
        label: str,
        table: Mapping[str, Any],
        *,
        key: int | None = None,
        owner: type | None = None,
    ) -> None:
        key = id(table) if key is None else key
        if key not in self._watched:
            self._watched[key] = _Variables(label, table, _contents(table), owner)

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
                (old, held), (new, holds) = before.get(name, _NONE), after.get(name, _NONE)
                if not _same(held, holds):
                    place = self._place_of_change(name, variables.owner, assigned=new is not old)
                    yield PythonBetween(
                        place.location,
                        place.line,
                        f"the call changes {variables.label}{name}",
                        "a program does not repeat it, and keeps what it computed with it",
                    )

    def _place_of_change(self, name: str, owner: type | None, *, assigned: bool) -> Place:
        """Where it is assigned, or else named, first in methods of its own class."""
        codes = [*_methods(owner), *self._codes]
        uses = [
            (one.opname.startswith("STORE") is not assigned, code, one.positions.lineno)
            for code in codes
            for one in dis.get_instructions(code)
            if one.argval == name and one.positions and one.positions.lineno
        ]
        if not uses:
            return Place()
        _, code, line = min(uses, key=lambda use: use[0])
        return line_of(code.co_filename, line)


def _methods(owner: type | None) -> Iterator[types.CodeType]:
    """Of the class, but `__init__`, and those that it inherits from classes of the user's."""
    for one in getattr(owner, "__mro__", ()):
        functions = [value for name, value in vars(one).items() if name != "__init__"]
        for code in (getattr(function, "__code__", None) for function in functions):
            if code is not None and not code.co_filename.startswith(TORCH):
                yield code


class _Cell(dict):
    """A variable of a closure, as the table that it is alone in."""

    def __init__(self, name: str, cell: types.CellType) -> None:
        self._name, self._cell = name, cell

    def items(self) -> Any:
        try:
            return [(self._name, self._cell.cell_contents)]
        except ValueError:  # it has no value yet
            return []


def _contents(table: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Of variables: their values, and what collections hold."""
    return {
        name: (value, _held(value))
        for name, value in list(table.items())
        if not name.startswith(_OF_DYNAMO)
    }


def _held(value: Any) -> Any:
    if isinstance(value, (list, tuple, collections.deque)):
        return tuple(value)
    if isinstance(value, dict):
        return (*value.keys(), *value.values())
    if isinstance(value, set):
        return frozenset(value)
    return value


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
    known = (type, types.FunctionType, torch.nn.Module, torch.Tensor)  # modules are watched
    of_torch = type(value).__module__.startswith("torch")
    return hasattr(value, "__dict__") and not isinstance(value, known) and not of_torch
