"""Make one GraphModule per stage.

A value that crosses between stages is always memory of its own: a member of a unit or a
placeholder. Views of it are made anew where they are used, and views that the graph returns are
made on the host. So an output of a region is a fresh tensor, and results that share memory in eager
share it here.

One exception saves a host part: if all that anyone wants of a region's value is one and the same
view of all its elements (`conv` then `flatten`), the region returns that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from mlir_npu.lowering.units import UnitGraph

Result = str | int | float | bool | None


@dataclass(frozen=True)
class Piece:
    """A stage as a GraphModule; `inputs` and `outputs` in graph order."""

    stage: int
    graph_module: fx.GraphModule
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def cut(graph: UnitGraph, stages: list[int]) -> tuple[list[Piece], tuple[Result, ...]]:
    """Pieces in the order in which they run, and what the graph returns."""
    results = _results(graph)
    home = {node: stages[unit] for node, unit in graph.unit_of.items()}
    home |= _sole_views(graph, home, results)
    views = [node for node in results if isinstance(node, fx.Node) and _floats(node, home)]
    members: dict[int, list[fx.Node]] = defaultdict(list)
    for node, stage in home.items():
        members[stage].append(node)
    if views:
        members[_last_host_stage(graph, home, views)].extend(dict.fromkeys(views))

    order = {node: index for index, node in enumerate(graph.graph_module.graph.nodes)}
    contents = {stage: _contents(members[stage], stage, home) for stage in sorted(members)}
    wanted = {node for _, inputs in contents.values() for node in inputs}
    wanted.update(node for node in results if isinstance(node, fx.Node))
    pieces = []
    for stage, (body, inputs) in contents.items():
        outputs = [node for node in members[stage] if node in wanted]
        ordered = (sorted(nodes, key=order.__getitem__) for nodes in (body, inputs, outputs))
        pieces.append(_piece(graph.graph_module, stage, *ordered))
    return pieces, tuple(node.name if isinstance(node, fx.Node) else node for node in results)


def _results(graph: UnitGraph) -> tuple[fx.Node | int | float | bool | None, ...]:
    returned = graph.graph_module.graph.output_node().args[0]
    return tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)


def _floats(node: fx.Node, home: dict[fx.Node, int]) -> bool:
    return node.op != "placeholder" and node not in home


def _sole_views(
    graph: UnitGraph, home: dict[fx.Node, int], results: Iterable[object]
) -> dict[fx.Node, int]:
    """Views that leave a region instead of the memory behind them, with their stages."""
    wanted: dict[fx.Node, set[fx.Node]] = defaultdict(set)
    for node, stage in home.items():
        for operand in node.all_input_nodes:
            root = graph.root(operand)
            if home.get(root, stage) != stage:
                wanted[root].add(operand)
    for node in results:
        if isinstance(node, fx.Node):
            wanted[graph.root(node)].add(node)
    sole = {}
    for root, forms in wanted.items():
        (form, *others) = forms
        if others or form is root or home.get(root, 0) % 2 == 0:
            continue
        if _covers(form.meta["val"], root.meta["val"]):
            sole[form] = home[root]
    return sole


def _covers(view: torch.Tensor, base: torch.Tensor) -> bool:
    """Whether a view holds every element of its base once, without gaps. Not, if that depends on
    sizes that only the data know."""
    if free_unbacked_symbols((view, base)):
        return False
    if view.numel() != base.numel():
        return False
    expected = 1
    for stride, size in sorted(zip(view.stride(), view.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def _last_host_stage(graph: UnitGraph, home: dict[fx.Node, int], views: Iterable[fx.Node]) -> int:
    """A host stage after all that `views` look at: the last existing one if it is late enough."""
    needed = max((home.get(graph.root(view), 0) for view in views), default=0)
    existing = max((stage for stage in home.values() if stage % 2 == 0), default=0)
    return existing if existing >= needed else needed + needed % 2


def _contents(
    members: list[fx.Node], stage: int, home: dict[fx.Node, int]
) -> tuple[list[fx.Node], list[fx.Node]]:
    """(nodes to copy into the stage, values it takes in): members, and the free nodes they read."""
    body, inputs = dict.fromkeys(members), {}
    pending = list(members)
    while pending:
        for operand in pending.pop().all_input_nodes:
            if operand in body:
                continue
            if _floats(operand, home):
                body[operand] = None
                pending.append(operand)
            else:
                inputs[operand] = None
    return list(body), list(inputs)


def _piece(
    owner: fx.GraphModule,
    stage: int,
    body: list[fx.Node],
    inputs: list[fx.Node],
    outputs: list[fx.Node],
) -> Piece:
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta.update(node.meta)
    for node in body:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in outputs))
    renamed = [node.name for node, copy in copies.items() if node.name != copy.name]
    if renamed:
        raise AssertionError(f"values lost their names on the way into a part: {renamed}")
    return Piece(
        stage,
        fx.GraphModule(owner, graph),
        tuple(node.name for node in inputs),
        tuple(node.name for node in outputs),
    )
