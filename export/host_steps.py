"""A host part -> steps of a plan: compiled pieces, views, writes, and what has no machine code.

What LLVM does not take goes through the passes of NPU regions where they know it (a convolution
that is too small to be a region of its own).

    def host_0(x, count):             run  y = cos(x), total = count + 1
        y = cos(x)                    view x[0]
        count.copy_(count + 1)   ->   write count <- total
        return y, x[0]
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import fx

from mlir_npu.errors import RegionCompileError
from mlir_npu.export.part_code import PartCode
from mlir_npu.export.random_numbers import Random
from mlir_npu.export.respelling import respell
from mlir_npu.lowering.cut import cut
from mlir_npu.lowering.dependencies import alias_root, is_view
from mlir_npu.lowering.fallback.llvm import RefusedCallsError
from mlir_npu.lowering.host_work import WRITE_BACK
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.stages import assign_stages
from mlir_npu.lowering.support import explain_support
from mlir_npu.lowering.units import UnitGraph
from mlir_npu.lowering.view_results import take_out_views

aten = torch.ops.aten


@dataclass(frozen=True)
class Compiled:
    part: Part
    code: PartCode


@dataclass(frozen=True)
class Look:
    """A view of the value `root`."""

    node: fx.Node
    root: fx.Node


@dataclass(frozen=True)
class Write:
    target: str
    source: str


@dataclass(frozen=True)
class Nothing:
    """A value without elements."""

    node: fx.Node


@dataclass(frozen=True)
class Left:
    """A part without machine code. reasons: of its calls, by name; None for those that only share
    the part with others."""

    part: Part
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Draw:
    """Random numbers that the steps behind it take, under this name."""

    name: str
    random: Random


HostStep = Compiled | Look | Write | Nothing | Left | Draw
Compile = Callable[[Part, str], PartCode]  # a part and an engine, "llvm" or "npu"


def host_steps(part: Part, compile_: Compile) -> Iterator[HostStep]:
    """In the order in which they run. `compile_` raises RefusedCallsError or RegionCompileError."""
    part, writes = _take_out_writes(part)
    for node in _results(part):
        if not node.meta["val"].numel() and node.op != "placeholder":
            yield Nothing(node)
    part = _with_results(part, [n for n in _results(part) if n.meta["val"].numel()])
    respelled = respell(part)
    for name, random in respelled.randoms.items():
        yield Draw(name, random)
    yield from _without_views(respelled.part, compile_, _compile_best)
    yield from writes


def _without_views(part: Part, compile_: Compile, then: Callable) -> Iterator[HostStep]:
    sharing = take_out_views(part)
    computed = part if sharing is None else sharing.compiled
    if any(node.op not in ("placeholder", "output") for node in _nodes(computed)):
        yield from then(computed, compile_)
    for node in _results(part):
        if node.op != "placeholder" and node.name not in computed.outputs:
            yield Look(node, alias_root(node))


def _compile_best(part: Part, compile_: Compile) -> Iterator[HostStep]:
    """As one region if there are matrix products in it, and all of it is for the NPU."""
    calls = _calls(part)
    if any(map(_is_product, calls)) and not any(map(explain_support, calls)):
        with contextlib.suppress(RegionCompileError):
            yield Compiled(part, compile_(part, "npu"))
            return
    yield from _compile(part, compile_)


def _is_product(node: fx.Node) -> bool:
    return node.target in (aten.mm.default, aten.bmm.default, aten.addmm.default)


def _compile(part: Part, compile_: Compile) -> Iterator[HostStep]:
    try:
        yield Compiled(part, compile_(part, "llvm"))
    except RefusedCallsError as error:
        nodes = {node.name: node for node in _nodes(part)}
        if not error.calls.keys() <= nodes.keys():  # a call that none of the part's own stands for
            yield from _compile_for_npu(part, compile_, _all_reasons(part, error.reason))
            return
        yield from _compile_in_pieces(
            part, compile_, {nodes[name]: reason for name, reason in error.calls.items()}
        )
    except RegionCompileError as error:
        yield from _compile_for_npu(part, compile_, _all_reasons(part, error.cause))


def _compile_in_pieces(
    part: Part, compile_: Compile, refused: dict[fx.Node, str]
) -> Iterator[HostStep]:
    graph = UnitGraph(part.graph_module, refused)
    pieces, _ = cut(graph, assign_stages(graph.units))
    reasons = {node.name: reason for node, reason in refused.items()}

    def refuse(piece: Part, compile_: Compile) -> Iterator[HostStep]:
        return _compile_for_npu(piece, compile_, reasons)

    for number, piece in enumerate(pieces):
        own = dataclasses.replace(
            part,
            name=part.name if len(pieces) == 1 else f"{part.name}_{number}",
            graph_module=piece.graph_module,
            inputs=piece.inputs,
            outputs=piece.outputs,
        )
        yield from _without_views(own, compile_, _compile if piece.stage % 2 else refuse)


def _compile_for_npu(
    part: Part, compile_: Compile, reasons: Mapping[str, str]
) -> Iterator[HostStep]:
    calls = [node for node in _calls(part) if not is_view(node)]
    left = {node.name: reasons.get(node.name, explain_support(node)) for node in calls
            if explain_support(node) is not None}  # fmt: skip
    if not left:
        try:
            yield Compiled(part, compile_(part, "npu"))
            return
        except RegionCompileError as error:
            left = _all_reasons(part, error.cause)
    yield Left(part, left)


def _take_out_writes(part: Part) -> tuple[Part, list[Write]]:
    """The copies into inputs with which graphs of AOTAutograd end."""
    found = [node for node in _nodes(part) if _is_write(node)]
    if not found:
        return part, []
    writes = [Write(node.args[0].name, node.args[1].name) for node in found]
    kept = [node for node in _results(part) if node not in found]
    kept += [node.args[1] for node in found if node.args[1].op != "placeholder"]
    return _with_results(part, list(dict.fromkeys(kept)), without=found), writes


def _is_write(node: fx.Node) -> bool:
    return (
        str(node.target) == WRITE_BACK
        and node.args[0].op == "placeholder"
        and isinstance(node.args[1], fx.Node)
        and all(user.op == "output" for user in node.users)
        and _is_alike(node.args[0], node.args[1])
    )


def _is_alike(a: fx.Node, b: fx.Node) -> bool:
    a, b = a.meta["val"], b.meta["val"]
    return a.shape == b.shape and a.dtype == b.dtype


def _with_results(part: Part, results: list[fx.Node], without: list[fx.Node] | None = None) -> Part:
    if results == list(_results(part)) and not without:
        return part
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in _nodes(part):
        if node.op != "output" and node not in (without or ()):
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in results))
    graph.eliminate_dead_code()
    module = fx.GraphModule(part.graph_module, graph)
    return dataclasses.replace(
        part, graph_module=module, outputs=tuple(node.name for node in results)
    )


def _all_reasons(part: Part, reason: str) -> dict[str, str]:
    return {node.name: reason for node in _calls(part) if not is_view(node)}


def _results(part: Part) -> tuple[fx.Node, ...]:
    return part.graph_module.graph.output_node().args[0]


def _nodes(part: Part) -> list[fx.Node]:
    return list(part.graph_module.graph.nodes)


def _calls(part: Part) -> list[fx.Node]:
    return [
        node
        for node in _nodes(part)
        if node.op in ("call_function", "call_method", "call_module")
        and node.target is not operator.getitem
    ]
