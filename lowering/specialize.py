"""Static sizes for a graph that Dynamo captured with symbols because a size had changed.

By default Dynamo makes a size symbolic once a second value of it is seen, and likewise a number,
such as the stride of a convolution. The NPU takes static shapes only, so symbols that shapes depend
on are fixed to the values at hand, which Dynamo guards, and another value compiles anew. Sizes that
the user asked to be dynamic (`torch.compile(dynamic=True)`, `mark_dynamic`) stay symbols, and what
depends on them runs on the host.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import RelaxedUnspecConstraint, ShapeEnv
from torch.utils import _pytree as pytree


def fix_sizes(graph_module: fx.GraphModule) -> None:
    """Guard every size of the inputs of a graph from Dynamo, and every number that some shape in
    it depends on, unless the user wants sizes dynamic."""
    if not torch._dynamo.config.assume_static_by_default:  # dynamic=True
        return
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    values = [node.meta.get("example_value") for node in placeholders]
    sizes = [size for value in values for size in _symbolic_sizes(value)]
    sizes += _numbers_in_shapes(values, graph_module)
    if not sizes or _has_dynamic_marks(sizes[0].node.shape_env):
        return
    for size in sizes:
        size.node.guard_int(__file__, 0)


def with_fixed_sizes(graph_module: fx.GraphModule) -> fx.GraphModule:
    """The graph with plain ints where symbols have been fixed; itself if there are none."""
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    if not any(_is_symbolic(node.meta.get("val")) for node in placeholders):
        return graph_module
    graph = fx.Graph()
    graph.output(graph.graph_copy(graph_module.graph, {}))
    constants: dict[fx.Node, int | fx.Node] = {}
    for node in graph.nodes:
        node.args, node.kwargs = fx.map_arg((node.args, node.kwargs), lambda n: constants.get(n, n))
        if "val" not in node.meta:
            continue
        node.meta["val"] = value = pytree.tree_map(_fixed, node.meta["val"])
        if isinstance(value, int) and not isinstance(value, bool):
            constants[node] = value
    return fx.GraphModule(graph_module, graph)


def _symbolic_sizes(value: object) -> list[torch.SymInt]:
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return []
    extents = (*value.shape, *value.stride(), value.storage_offset())
    return [extent for extent in extents if isinstance(extent, torch.SymInt)]


def _numbers_in_shapes(
    inputs: Sequence[object], graph_module: fx.GraphModule
) -> list[torch.SymInt]:
    numbers = [value for value in inputs if isinstance(value, torch.SymInt)]
    if not numbers:
        return []
    values = pytree.tree_leaves([n.meta.get("example_value") for n in graph_module.graph.nodes])
    extents = [extent for value in values for extent in _symbolic_sizes(value)]
    symbols = {symbol for extent in extents for symbol in extent.node.expr.free_symbols}
    return [number for number in numbers if number.node.expr.free_symbols & symbols]


def _has_dynamic_marks(shapes: ShapeEnv) -> bool:
    """Whether the user marked a size of some input as dynamic, which may not be fixed."""
    contexts = (fake.symbolic_context for fake in shapes.tracked_fakes or ())
    constraints = (
        constraint
        for context in contexts
        for constraint in getattr(context, "constraint_sizes", None) or ()
    )
    return any(
        constraint is not None
        and not (isinstance(constraint, RelaxedUnspecConstraint) and constraint.warn_only)
        for constraint in constraints
    )


def _is_symbolic(value: object) -> bool:
    return isinstance(value, torch.SymInt) or bool(_symbolic_sizes(value))


def _fixed(value: object) -> object:
    """Number or fake tensor without symbols, if all of its symbols have been fixed."""
    if isinstance(value, torch.SymInt):
        number = value.node.maybe_as_int()
        return value if number is None else number
    if not _symbolic_sizes(value):
        return value
    shape, strides = map(_fixed_all, (value.shape, value.stride()))
    if shape is None or strides is None:
        return value
    with value.fake_mode:
        return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _fixed_all(extents: Sequence[int | torch.SymInt]) -> list[int] | None:
    numbers = [_fixed(extent) for extent in extents]
    return numbers if all(isinstance(number, int) for number in numbers) else None
