"""What partitioning decides, as plain frozen data.

A `PartitionPlan` cuts one ATen graph into parts that run one after the other. Every value that
crosses from one part to another has the name of the FX node that makes it, so a plan is read,
stitched and tested by name and never by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import fx

Place = Literal["npu", "host"]


@dataclass(frozen=True)
class Rejection:
    """Why one node runs on the host.

    node: FX node name; op: ATen overload, such as "aten.convolution.default"; reason: one sentence
    with the offending numbers; location: "file:line" of the user's program, if the graph knows it.
    """

    node: str
    op: str
    reason: str
    location: str | None = None


@dataclass(frozen=True)
class Part:
    """A group of nodes that is compiled as one.

    graph_module: placeholders in the order of `inputs` (each with meta["val"]); returns a tuple in
    the order of `outputs`.
    macs: multiply-accumulates of one call; conv_macs: those of convolutions only.
    node_count: ATen calls, without placeholders, getitem and the output.
    """

    name: str
    place: Place
    graph_module: fx.GraphModule
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int
    conv_macs: int
    node_count: int


@dataclass(frozen=True)
class PartitionPlan:
    """`parts` in the order in which they run.

    placeholders: inputs of the graph, in order.
    results: one entry for each result of the graph, in order: the name of a node (a placeholder
    included; names may repeat), None, or a Python number.
    """

    graph_module: fx.GraphModule
    placeholders: tuple[str, ...]
    parts: tuple[Part, ...]
    results: tuple[str | int | float | bool | None, ...]
    rejections: tuple[Rejection, ...]

    @property
    def npu_parts(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.place == "npu")
