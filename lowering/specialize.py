"""A graph with numbers in the place of symbols.

Before: sym_size s0; view(x: f32[s0, 4], [s0 * 2, 2]); x is s0 x 4, and s0 is a placeholder
After, for s0 = 3: view(x: f32[3, 4], [6, 2]), and nothing reads the placeholder

Symbols without a value, such as the number of rows that nonzero finds, stay, also inside of
expressions. Assertions that hold for the numbers go.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy
import torch
from torch import fx
from torch.utils import _pytree as pytree

from mlir_npu.lowering.symbols import extents

_PLAIN = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_SYMBOLIC = tuple(_PLAIN)


def specialize(graph_module: fx.GraphModule, sizes: Mapping[sympy.Symbol, int]) -> fx.GraphModule:
    """A copy of the graph, and of graphs nested in it; the given one is left alone."""
    values = {symbol: sympy.Integer(size) for symbol, size in sizes.items()}
    return _specialize(graph_module, values)


def _specialize(graph_module: fx.GraphModule, values: Mapping) -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(graph.graph_copy(graph_module.graph, {}))
    constants: dict[fx.Node, int | float | bool | fx.Node] = {}
    for node in list(graph.nodes):
        node.args, node.kwargs = fx.map_arg((node.args, node.kwargs), lambda n: constants.get(n, n))
        if node.target is torch.ops.aten._assert_scalar.default and node.args[0] is True:
            graph.erase_node(node)
            continue
        if "val" not in node.meta:
            continue
        before = node.meta["val"]
        node.meta["val"] = value = pytree.tree_map(lambda v: _with_values(v, values), before)
        if isinstance(before, _SYMBOLIC) and not isinstance(value, _SYMBOLIC):
            constants[node] = value
    result = fx.GraphModule(graph_module, graph)
    result.meta.update(graph_module.meta)
    for name, module in list(result.named_children()):
        if isinstance(module, fx.GraphModule):
            setattr(result, name, _specialize(module, values))
    return result


def _with_values(value: object, values: Mapping) -> object:
    if isinstance(value, _SYMBOLIC):
        return _number(value, values)
    if not any(isinstance(extent, torch.SymInt) for extent in extents(value)):
        return value
    shape = [_number(size, values) for size in value.shape]
    strides = [_number(stride, values) for stride in value.stride()]
    with value.fake_mode:
        return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _number(value: object, values: Mapping) -> object:
    if not isinstance(value, _SYMBOLIC):
        return value
    before = value.node.expr
    expression = before.xreplace(values)
    if not expression.free_symbols:
        return next(plain for kind, plain in _PLAIN.items() if isinstance(value, kind))(expression)
    if expression == before or not isinstance(value, torch.SymInt):
        return value
    return value.node.shape_env.create_symintnode(expression, hint=None)
