"""Results of a host part that share memory with its inputs or with each other.

Compiled code returns memory of its own, so such views are left out of what is compiled, and PyTorch
makes them around it:

    def host_0(x):                      def compiled(x):
        y = relu(x)                         return (relu(x),)
        return y, y.t(), x[0]    ->     def host_0(x):
                                            (y,) = compiled(x)
                                            return y, y.t(), x[0]
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from torch import fx

from mlir_npu.lowering.dependencies import alias_root, is_view
from mlir_npu.lowering.plan import Part


@dataclasses.dataclass(frozen=True)
class ViewResults:
    """compiled: the part without the views; views: from inputs of the part and results of
    `compiled` to all results of the part."""

    compiled: Part
    views: fx.GraphModule

    @property
    def is_all(self) -> bool:
        """Whether nothing but views is left."""
        nodes = self.compiled.graph_module.graph.nodes
        return all(node.op in ("placeholder", "output") for node in nodes)

    def around(self, compiled: Callable) -> ViewCall:
        return ViewCall(self.views, compiled)


class ViewCall:
    """views: takes what the part takes and what `inner` returns."""

    def __init__(self, views: Callable, inner: Callable) -> None:
        self.views, self.inner = views, inner
        self._views = getattr(views, "forward", views)

    def __call__(self, *inputs):
        return self._views(*inputs, *self.inner(*inputs))


def take_out_views(part: Part) -> ViewResults | None:
    """None if every result of the part is memory of its own, or an input itself."""
    results = list(dict.fromkeys(part.graph_module.graph.output_node().args[0]))
    sharing = Counter(map(alias_root, results))
    views = [node for node in results if is_view(node) and _shares(node, sharing)]
    if not views:
        return None
    roots = [alias_root(node) for node in views]
    computed = [node for node in results if node not in views and node.op != "placeholder"]
    computed += [node for node in roots if node.op != "placeholder"]
    computed = list(dict.fromkeys(computed))
    return ViewResults(_with_results(part, computed), _view_graph(part, computed))


def _shares(view: fx.Node, sharing: Counter[fx.Node]) -> bool:
    root = alias_root(view)
    return root.op in ("placeholder", "get_attr") or sharing[root] > 1


def _with_results(part: Part, results: list[fx.Node]) -> Part:
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    graph.graph_copy(part.graph_module.graph, copies)
    graph.output(tuple(copies[node] for node in results))
    graph.eliminate_dead_code()
    module = fx.GraphModule(part.graph_module, graph)
    return dataclasses.replace(
        part, graph_module=module, outputs=tuple(node.name for node in results)
    )


def _view_graph(part: Part, computed: list[fx.Node]) -> fx.GraphModule:
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in (*part.graph_module.graph.find_nodes(op="placeholder"), *computed):
        copies[node] = graph.placeholder(node.name)
    returned = part.graph_module.graph.output_node().args[0]
    needed = _behind(returned, given=copies)
    for node in part.graph_module.graph.nodes:
        if node in needed:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in returned))
    return fx.GraphModule(part.graph_module, graph)


def _behind(results: Iterable[fx.Node], given: Collection[fx.Node]) -> set[fx.Node]:
    """Nodes to run for the results, from those that are given."""
    needed, pending = set(), list(results)
    while pending:
        node = pending.pop()
        if node not in given and node not in needed:
            needed.add(node)
            pending += node.all_input_nodes
    return needed
