"""The stitching plan: what a program in any language needs to run a captured one.

Plain frozen data. `as_json` is what plan.json holds; schema/plan-1.schema.json describes it, and
docs/export.md explains it. Its steps are in plan_steps.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

from mlir_npu.export.plan_steps import Number, Step

FORMAT = "mlir-npu-stitching-plan"
VERSION = 1
ALIGNMENT = 64  # of all memory that the caller provides, in bytes

Result = str | Number | None  # a value's name, or the number itself


@dataclass(frozen=True)
class Source:
    """Where a value comes from.

    kind: "input" and "tangent" (given with every call), "parameter" and "buffer" (the model's, at
    `offset` of the weights), "constant" (of neither, likewise), "prepared" (made of parameters by a
    unit's prepare steps), "computed" (made by steps of a unit, or of the program), "random" (given
    with every call: numbers of a `distribution`, "uniform" in [0, 1) or "normal").
    name: of an input, parameter or buffer, as the program calls it; of: what a tangent or a
    gradient belongs to.
    """

    kind: str
    name: str | None = None
    of: str | None = None
    offset: int | None = None
    unit: str | None = None
    distribution: str | None = None


@dataclass(frozen=True)
class Value:
    """A tensor. strides: in elements; base: the value whose memory it lies in, `byte_offset` behind
    that one's first element, or None; bytes: of the memory that it owns, 0 with a base."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    bytes: int
    source: Source
    base: str | None = None
    byte_offset: int = 0


@dataclass(frozen=True)
class Unit:
    """A graph of the model: prepare (whenever parameters have changed), then steps, in order.

    kind: "inference", "forward" or "backward"; location: "file:line" of the user's program; inputs,
    outputs: of the unit, in order; saved: outputs that are there for a backward unit; frees: for
    every step, the values whose memory is not needed any more.
    """

    name: str
    kind: str
    location: str | None
    inputs: tuple[str, ...]
    outputs: tuple[Result, ...]
    saved: tuple[str, ...]
    prepare: tuple[Step, ...]
    steps: tuple[Step, ...]
    frees: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class PartArgument:
    """A slot of an entry point: packed, row-major memory, "i8" for workspace and scratch."""

    role: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PartEntry:
    """A compiled part. engine: "npu" or "llvm"; object, ir: files; needs: symbols of others."""

    name: str
    unit: str
    engine: str
    symbol: str
    arguments: tuple[PartArgument, ...]
    prepare_symbol: str | None
    prepare_arguments: tuple[PartArgument, ...]
    workspace_bytes: int
    scratch_bytes: int
    object: str | None
    ir: Mapping[str, str]
    needs: tuple[str, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True)
class ProgramInput:
    """name: as the model calls it; constant: of an input that is no tensor, its text."""

    name: str
    value: str | None
    constant: str | None = None


@dataclass(frozen=True)
class ProgramOutput:
    """path: where in the model's result, as in Python ("" is the result itself); value: a name or a
    number; tangent: the value that its gradient goes into."""

    path: str
    value: Result
    tangent: str | None = None


@dataclass(frozen=True)
class Gradient:
    """value: the gradient of the input or parameter `of`, null if nothing depends on it."""

    of: str
    value: str | None


@dataclass(frozen=True)
class Plan:
    """forward, backward: steps of the program, in order; the latter after the former, if gradients
    are wanted. threads: of every team, 0 if whoever runs the program decides."""

    name: str
    producer: Mapping[str, str]
    machine: Mapping[str, Any]
    files: Mapping[str, str]
    threads: int
    workspace_bytes: int
    scratch_bytes: int
    weights_bytes: int
    inputs: tuple[ProgramInput, ...]
    outputs: tuple[ProgramOutput, ...]
    gradients: tuple[Gradient, ...]
    forward: tuple[Step, ...]
    backward: tuple[Step, ...]
    units: tuple[Unit, ...]
    parts: tuple[PartEntry, ...]
    values: tuple[Value, ...]


def as_json(value: Any) -> Any:
    """Dictionaries, lists, numbers, text and None; dataclasses as their fields, without those that
    are as they are if nothing is said."""
    if isinstance(value, Plan):
        opening = {"format": FORMAT, "version": VERSION, "alignment": ALIGNMENT}
        return opening | _fields(value)
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {key: as_json(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(entry) for entry in value]
    return value


def _fields(value: Any) -> dict[str, Any]:
    found = {key.lower(): getattr(value, key) for key in ("OP", "ENGINE") if hasattr(value, key)}
    for entry in fields(value):
        content = getattr(value, entry.name)
        if entry.default is MISSING or content != entry.default:
            found[entry.name] = as_json(content)
    return found
