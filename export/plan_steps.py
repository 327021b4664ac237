"""The steps of a stitching plan: what whoever runs a program does, one after the other.

OP is the name of a step in plan.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

Number = int | float | bool


@dataclass(frozen=True)
class Slot:
    """What a pointer of a call points to: a value's first element, or memory of so many bytes that
    nobody reads behind the call: `workspace`, or `scratch` for each thread."""

    value: str | None = None
    workspace: int | None = None
    scratch: int | None = None


@dataclass(frozen=True)
class Call:
    """Call an entry point with pointers to the slots."""

    OP: ClassVar[str] = "call"

    part: str
    symbol: str
    slots: tuple[Slot, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """`value` is another look at its base. Nothing is moved."""

    OP: ClassVar[str] = "view"

    value: str


@dataclass(frozen=True)
class Copy:
    """Copy element by element between values of one shape and dtype."""

    OP: ClassVar[str] = "copy"

    source: str
    target: str


@dataclass(frozen=True)
class Zero:
    """All elements are zero from now on."""

    OP: ClassVar[str] = "zero"

    value: str


@dataclass(frozen=True)
class Add:
    """Add element by element to what `target` holds; both have one shape and dtype."""

    OP: ClassVar[str] = "add"

    source: str
    target: str


@dataclass(frozen=True)
class Check:
    """The program is for calls in which this value (of one element) is `expected`: Python decided
    upon it at `location`. With another one its results mean nothing."""

    OP: ClassVar[str] = "check"

    value: str
    expected: Number
    location: str | None = None


@dataclass(frozen=True)
class Run:
    """Take all steps of a unit."""

    OP: ClassVar[str] = "run"

    unit: str


@dataclass(frozen=True)
class HostCall:
    """An ATen call as data: arguments are {"value": name}, numbers, text, lists or null."""

    op: str
    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    location: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Host:
    """Calls that have no machine code: whoever runs the program computes them."""

    OP: ClassVar[str] = "host"
    ENGINE: ClassVar[str] = "host"

    calls: tuple[HostCall, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


Step = Call | View | Copy | Zero | Add | Check | Run | Host
