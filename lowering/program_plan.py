"""A whole program, over all graph breaks, as plain frozen data: units, values, and what runs when.

A unit is one compiled graph, called once. Every value that crosses from one unit to another, or is
an input, a result, a saved tensor, a tangent or a gradient, has a name that is unique in the
program. `forward` and `backward` are lists of steps, to be run in order.

Two values share memory only where a `View` step says so, and only units that list a value in
`written` change its contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["input", "parameter", "buffer", "constant", "output", "saved", "tangent", "gradient"]


@dataclass(frozen=True)
class Value:
    """A tensor.

    dtype: as in "float32"; label: what it is, for people, such as "parameter layer1.conv.weight" or
    "output layer1.conv, model.py:12"; source: for inputs the path among the arguments, for
    parameters and buffers the name in the model's state; of: for tangents and gradients the value
    that they belong to.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    label: str
    source: str | None = None
    of: str | None = None
    requires_grad: bool = False


@dataclass(frozen=True)
class PartCall:
    """One region or host part of a unit. Its inputs and outputs have names of the unit, not of the
    program. engine: "npu", "llvm", "inductor", "eager" or "llvm and eager"."""

    name: str
    place: Literal["npu", "host"]
    engine: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Unit:
    """One compiled graph.

    origin: "graph" of Dynamo, or "between": PyTorch calls that ran in Python between two graphs;
    location: "file:line" of the user's program where it starts.
    inputs, outputs: values of the program; inside of the unit they are called `placeholders` and
    `results`, in the same order. An output that nobody needs, or that is no tensor, is None.
    saved: those of the outputs that are there for its backward; written: inputs it changes in
    place; parts: in the order in which they run.
    """

    name: str
    kind: Literal["forward", "backward", "inference"]
    origin: Literal["graph", "between"]
    location: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str | None, ...]
    saved: tuple[str, ...]
    written: tuple[str, ...]
    placeholders: tuple[str, ...]
    results: tuple[str | int | float | bool | None, ...]
    parts: tuple[PartCall, ...]


@dataclass(frozen=True)
class Run:
    """Call a unit."""

    unit: str


@dataclass(frozen=True)
class View:
    """`output` is the memory of `base` with this shape, these strides and this offset, counted in
    elements from the first element of `base`."""

    output: str
    base: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Check:
    """What Python read of this value (of one element) when the program was captured, and decided
    upon. A call in which it is another goes another way, which the program does not know."""

    value: str
    expected: bool | int | float
    location: str | None
    line: str | None


@dataclass(frozen=True)
class Sum:
    """`output` is the sum of these tangents, in order, with the strides of the value `output`. Of
    one it is a copy, or itself if it has these strides; of none it is all zeros."""

    output: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class ViewGradient:
    """`output`, shaped as the base of the view, is zero but where the view was, and there it is
    `gradient`: what belongs to the base of that View step."""

    output: str
    gradient: str
    view: View


@dataclass(frozen=True)
class Gradient:
    """The gradient of an input or parameter: value `gradient`, None if it has none."""

    of: str
    gradient: str | None


@dataclass(frozen=True)
class ProgramPlan:
    """inputs: tensors among the arguments of a call; parameters: what is the model's, buffers
    included; constants: tensors that belong to neither.

    results: tensors among what the model returns, each once; tangents: what the backward takes,
    one for each of the results that has a gradient, and in their order; saved: what the forward
    leaves for the backward, inputs and parameters included; gradients: what the backward returns,
    for every input and parameter that requires one.
    """

    train: bool
    values: Mapping[str, Value]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    constants: tuple[str, ...]
    units: tuple[Unit, ...]
    forward: tuple[Run | View | Check, ...]
    backward: tuple[Run | Sum | ViewGradient, ...]
    results: tuple[str, ...]
    saved: tuple[str, ...]
    tangents: tuple[str, ...]
    gradients: tuple[Gradient, ...]

    def unit(self, name: str) -> Unit:
        return next(unit for unit in self.units if unit.name == name)
