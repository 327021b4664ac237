"""A partitioned graph as data that a file can hold, and back: for programs that are exported after
they were loaded.

Kept are the calls of ATen, what the inputs of parts look like, and lines of the user's program.
Types of everything else are inferred again.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch._subclasses import FakeTensorMode

from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering.plan import Part, PartitionPlan, Place
from mlir_npu.lowering.source_location import source_location
from mlir_npu.lowering.support.rules import HOLDS_ZEROS

_CALLS = ("placeholder", "call_function", "get_attr", "output")
_GETITEM = "getitem"


@dataclass(frozen=True)
class _Value:
    """The value of another node."""

    name: str


@dataclass(frozen=True)
class SavedNode:
    """target: of a call, the ATen overload; type: of an input, its shape, strides, dtype and
    offset in memory."""

    name: str
    op: str
    target: str
    arguments: tuple
    keywords: dict[str, Any]
    location: str | None = None
    type: tuple | None = None
    zeros: bool = False


@dataclass(frozen=True)
class SavedPart:
    """constants: tensors by their names in the graph."""

    name: str
    place: Place
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int
    conv_macs: int
    node_count: int
    nodes: tuple[SavedNode, ...]
    constants: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, part: Part) -> SavedPart:
        """Raises HostLoweringError for calls of other things than ATen."""
        module = part.graph_module
        constants = {
            node.target: operator.attrgetter(node.target)(module)
            for node in module.graph.find_nodes(op="get_attr")
        }
        if other := [n for n, value in constants.items() if not isinstance(value, torch.Tensor)]:
            raise HostLoweringError(f"its graph refers to {', '.join(other)}")
        return cls(
            part.name,
            part.place,
            part.inputs,
            part.outputs,
            part.macs,
            part.conv_macs,
            part.node_count,
            tuple(map(_saved, module.graph.nodes)),
            constants,
        )

    def restored(self) -> Part:
        owner = torch.nn.Module()
        for name, tensor in self.constants.items():
            owner.register_buffer(name, tensor)
        graph = fx.Graph()
        nodes: dict[str, fx.Node] = {}
        for saved in self.nodes:
            nodes[saved.name] = _restored(saved, graph, nodes)
        module = fx.GraphModule(owner, graph)
        mode = FakeTensorMode(static_shapes=True, allow_non_fake_inputs=True)
        with mode:
            _Types(module).run(*_examples(self.nodes))
        return Part(
            self.name,
            self.place,
            module,
            self.inputs,
            self.outputs,
            self.macs,
            self.conv_macs,
            self.node_count,
        )


@dataclass(frozen=True)
class SavedGraph:
    placeholders: tuple[str, ...]
    parts: tuple[SavedPart, ...]
    results: tuple[str | int | float | bool | None, ...]

    @classmethod
    def of(cls, plan: PartitionPlan) -> SavedGraph:
        """Raises HostLoweringError."""
        return cls(plan.placeholders, tuple(map(SavedPart.of, plan.parts)), plan.results)

    def constants(self) -> dict[str, dict[str, torch.Tensor]]:
        """Of all parts, by their names."""
        return {part.name: dict(part.constants) for part in self.parts if part.constants}

    def with_constants(self, constants: Mapping[str, Mapping[str, torch.Tensor]]) -> SavedGraph:
        parts = (replace(part, constants=constants.get(part.name, {})) for part in self.parts)
        return replace(self, parts=tuple(parts))

    def restored(self) -> PartitionPlan:
        """Without the graph as a whole."""
        empty = fx.GraphModule(torch.nn.Module(), fx.Graph())
        parts = tuple(part.restored() for part in self.parts)
        return PartitionPlan(empty, self.placeholders, parts, self.results, ())


@dataclass(frozen=True)
class RestoredGraphs(Mapping[str, PartitionPlan]):
    """Saved graphs by their names, restored when they are asked for."""

    saved: Mapping[str, SavedGraph]

    def __getitem__(self, name: str) -> PartitionPlan:
        return self.saved[name].restored()

    def __iter__(self) -> Iterator[str]:
        return iter(self.saved)

    def __len__(self) -> int:
        return len(self.saved)


class _Types(fx.Interpreter):
    """Learns the type of every value from those of the inputs."""

    def run_node(self, node: fx.Node) -> Any:
        value = super().run_node(node)
        if node.op != "output":
            node.meta["val"] = value
        return value


def _saved(node: fx.Node) -> SavedNode:
    target = _GETITEM if node.target is operator.getitem else str(node.target)
    if node.op not in _CALLS or (node.op == "call_function" and _call(target) is not node.target):
        raise HostLoweringError(f"its graph calls {node.target}")
    arguments, keywords = fx.map_arg((node.args, node.kwargs), lambda other: _Value(other.name))
    kept = SavedNode(
        node.name, node.op, target, _plain(arguments), _plain(keywords), source_location(node)
    )
    if node.op != "placeholder":
        return kept
    value = node.meta["val"]
    type_ = tuple(value.shape), tuple(value.stride()), value.dtype, value.storage_offset()
    return replace(kept, type=type_, zeros=bool(node.meta.get(HOLDS_ZEROS)))


def _plain(value: Any) -> Any:
    """Without the containers of FX, which other versions might not read."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return (tuple if isinstance(value, tuple) else list)(map(_plain, value))
    return value


def _restored(saved: SavedNode, graph: fx.Graph, nodes: Mapping[str, fx.Node]) -> fx.Node:
    arguments, keywords = _with_nodes((saved.arguments, saved.keywords), nodes)
    target = _call(saved.target) if saved.op == "call_function" else saved.target
    node = graph.create_node(saved.op, target, arguments, keywords, name=saved.name)
    if saved.location is not None:
        file, _, line = saved.location.rpartition(":")
        node.meta["stack_trace"] = f'  File "{file}", line {line}, in forward'
    if saved.zeros:
        node.meta[HOLDS_ZEROS] = True
    return node


def _with_nodes(value: Any, nodes: Mapping[str, fx.Node]) -> Any:
    if isinstance(value, _Value):
        return nodes[value.name]
    if isinstance(value, dict):
        return {key: _with_nodes(item, nodes) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_with_nodes(item, nodes) for item in value)
    return value


def _call(target: str) -> Any:
    """The function of that name: `aten.add.Tensor`. None if there is none."""
    if target == _GETITEM:
        return operator.getitem
    try:
        return operator.attrgetter(target)(torch.ops)
    except (AttributeError, RuntimeError):
        return None


def _examples(nodes: tuple[SavedNode, ...]) -> list[torch.Tensor]:
    found = []
    for node in nodes:
        if node.type is not None:
            shape, strides, dtype, offset = node.type
            reach = sum(max(size - 1, 0) * step for size, step in zip(shape, strides)) + 1
            memory = torch.empty(offset + reach, dtype=dtype, device="cpu")
            found.append(memory.as_strided(shape, strides, offset))
    return found
