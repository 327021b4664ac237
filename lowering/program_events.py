"""What happens while a model is called, one thing after the other."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from mlir_npu.lowering.source_location import source_location


@dataclass(frozen=True)
class Place:
    """location: "file:line" of the user's program; line: its text."""

    location: str | None = None
    line: str | None = None


def autocast_dtype() -> torch.dtype | None:
    """What autocast casts to now, None if it is off."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


@dataclass(frozen=True)
class Mode:
    """grad: whether gradients are recorded; autocast: what it casts to, None if it is off."""

    grad: bool
    autocast: torch.dtype | None

    @classmethod
    def now(cls) -> Mode:
        return cls(torch.is_grad_enabled(), autocast_dtype())

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        enabled = self.autocast is not None
        with torch.set_grad_enabled(self.grad), torch.autocast("cpu", self.autocast, enabled):
            yield


@dataclass(frozen=True, eq=False)
class GraphEvent:
    """A graph of Dynamo was called. outputs: with tensors in the place of numbers that depend on
    data; sources: where Dynamo found each input; wanted: ids of the inputs that required a gradient
    before; written: inputs that require one after, and were changed in place."""

    graph_module: fx.GraphModule
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    sources: tuple[str, ...]
    mode: Mode
    wanted: frozenset[int]
    written: tuple[torch.Tensor, ...]


@dataclass(frozen=True, eq=False)
class CallEvent:
    """A function of PyTorch was called between graphs. wanted, written: as of graphs."""

    function: Callable
    arguments: tuple
    keywords: Mapping[str, Any]
    result: Any
    place: Place
    mode: Mode
    wanted: frozenset[int]
    written: tuple[torch.Tensor, ...]


@dataclass(frozen=True, eq=False)
class ReadEvent:
    """Python read the number that a tensor holds. decides: whether what came after may depend on
    it, once that is known; listed: the tensor that it was read of together with other numbers, so
    that it decides only if it comes back."""

    tensor: torch.Tensor
    number: bool | int | float
    place: Place
    decides: bool = False
    listed: torch.Tensor | None = None


@dataclass(frozen=True)
class PythonBetween:
    """Python that ran between graphs, and is no part of a program. effect: what that means."""

    location: str | None
    line: str | None
    reason: str
    effect: str

    def __str__(self) -> str:
        return f"{self.location or '?'}: {self.line or ''}\n    {self.reason}: {self.effect}"


Event = GraphEvent | CallEvent | ReadEvent


def place_of(node: fx.Node) -> Place:
    """The user's line that a node of Dynamo's graph comes from."""
    location = source_location(node)
    if location is None:
        return Place()
    file, _, number = location.rpartition(":")
    return line_of(file, int(number))


def line_of(file: str, line: int) -> Place:
    return Place(f"{file}:{line}", linecache.getline(file, line).strip())
