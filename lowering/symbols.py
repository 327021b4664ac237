"""Which symbols of a graph are sizes of its inputs, and how a call tells their values.

Dynamo makes a size a symbol where the user says so (`dynamic=True`, `mark_dynamic`) or where it has
changed. Numbers of the program (`x * n`) may be symbols too, and so are sizes that only the data
know (`nonzero`): both take ever new values, so nothing is compiled for them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import sympy
import torch
from torch import fx
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class SizeReader:
    """symbols: the sizes; read: their values, from the arguments of a call."""

    symbols: tuple[sympy.Symbol, ...]
    read: Callable[[Sequence[object]], tuple[int, ...]]


def input_symbols(graph_module: fx.GraphModule) -> frozenset[sympy.Symbol]:
    """Symbols in the inputs of a graph from Dynamo."""
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    values = [node.meta.get("example_value") for node in placeholders]
    return frozenset(symbol for value in values for symbol in _symbols(value))


def size_reader(graph_module: fx.GraphModule, inputs: Set[sympy.Symbol]) -> SizeReader | None:
    """For the symbols among `inputs` on which the shape of some tensor depends; None if there are
    none. Nested graphs, as those of torch.cond, count."""
    wanted = {symbol for value in _tensors(graph_module) for symbol in _symbols(value)} & inputs
    found: dict[sympy.Symbol, Callable] = {}
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    for position, node in enumerate(placeholders):  # numbers are quicker to read than shapes
        if _symbol(value := node.meta.get("val")) in wanted:
            found.setdefault(_symbol(value), operator.itemgetter(position))
    for position, node in enumerate(placeholders):
        if isinstance(value := node.meta.get("val"), torch.Tensor):
            for dim, size in enumerate(value.shape):
                if _symbol(size) in wanted:
                    found.setdefault(_symbol(size), _size(position, dim))
    if not found:
        return None
    readers = tuple(found.values())
    return SizeReader(tuple(found), lambda arguments: tuple([read(arguments) for read in readers]))


def has_known_symbols(graph_module: fx.GraphModule) -> bool:
    """Whether some extent of a tensor is written as a symbol whose only value a guard has fixed."""
    return any(
        isinstance(extent, torch.SymInt) and not extent.node.expr.free_symbols
        for value in _tensors(graph_module)
        for extent in extents(value)
    )


def extents(value: object) -> tuple[int | torch.SymInt, ...]:
    """Sizes, strides and offset of a strided tensor; nothing of any other value."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return ()
    return (*value.shape, *value.stride(), value.storage_offset())


def _tensors(graph_module: fx.GraphModule) -> Iterator[torch.Tensor]:
    for module in graph_module.modules():
        if isinstance(module, fx.GraphModule):
            for node in module.graph.nodes:
                leaves = pytree.tree_leaves(node.meta.get("val"))
                yield from (leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def _symbols(value: object) -> Iterator[sympy.Symbol]:
    for part in extents(value) or (value,):
        if isinstance(part, torch.SymInt):
            yield from part.node.expr.free_symbols


def _symbol(value: object) -> sympy.Symbol | None:
    """The symbol that a value is; None of anything else, as `2 * s0`."""
    expression = value.node.expr if isinstance(value, torch.SymInt) else None
    return expression if isinstance(expression, sympy.Symbol) else None


def _size(position: int, dim: int) -> Callable[[Sequence[torch.Tensor]], int]:
    return lambda arguments: arguments[position].shape[dim]
