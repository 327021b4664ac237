"""Calls of host parts that have no machine code, written with calls that have.

What LLVM and the NPU do not take as it is (embeddings, maxima with their places, the gradient of
attention, recurrent layers, dropout) is replaced by its decomposition here, for export only: in
this process eager is at least as fast. Random numbers become inputs of the part, because a program
without Python gets them from its caller:

    y, mask = native_dropout(x, 0.5)  ->  mask = random < 0.5; y = x * mask * 2
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta

from mlir_npu.export.attention import ATTENTION
from mlir_npu.export.class_loss import CLASS_LOSS
from mlir_npu.export.indexing import INDEXING
from mlir_npu.export.mixed_types import MIXED_TYPES
from mlir_npu.export.ordering import ORDERING
from mlir_npu.export.pool_indices import POOL_INDICES
from mlir_npu.export.random_numbers import RANDOM, Random, draws
from mlir_npu.export.recurrent import RECURRENT
from mlir_npu.lowering.plan import Part
from mlir_npu.runtime.tensor_spec import memory_order

_TABLE: dict[torch._ops.OpOverload, Callable] = {
    **ATTENTION,
    **CLASS_LOSS,
    **INDEXING,
    **MIXED_TYPES,
    **ORDERING,
    **POOL_INDICES,
    **RECURRENT,
}
_REPLACED = _TABLE.keys() | RANDOM.keys()
# nobody is there to raise an error
_CHECKS = ("aten._assert_async.msg", "aten._assert_async.default", "aten._assert_scalar.default")


@dataclass(frozen=True)
class Respelled:
    """randoms: what the further inputs of the part are, by their names."""

    part: Part
    randoms: Mapping[str, Random]


def respell(part: Part) -> Respelled:
    """The part itself if there is nothing to replace."""
    nodes = list(part.graph_module.graph.nodes)
    if not any(node.target in _REPLACED or _is_check(node) for node in nodes):
        return Respelled(part, {})
    found = {
        f"{part.name}_{node.name}_random": (node, draws(node)) for node in nodes if draws(node)
    }
    randoms = {name: random for name, (_, random) in found.items()}
    positions = {node.name: i for i, (node, _) in enumerate(found.values())}
    results = nodes[-1].args[0]
    interpreter = _Respelling(part.graph_module, positions, {node.name for node in results})
    placeholders = part.graph_module.graph.find_nodes(op="placeholder")
    count = len(placeholders)

    def call(*arguments: torch.Tensor) -> tuple:
        interpreter.given = arguments[count:]
        interpreter.run(*arguments[:count])
        return tuple(interpreter.found[node.name] for node in results)

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, preserve_node_meta():
        examples = [_like(node.meta["val"]) for node in placeholders]
        examples += [torch.empty(random.shape, dtype=random.dtype) for random in randoms.values()]
        traced = make_fx(call)(*examples)
    traced.graph.eliminate_dead_code()
    inputs = (*part.inputs, *randoms)
    module = _renamed(traced, inputs, [node.name for node in results])
    for new, old in zip(module.graph.find_nodes(op="placeholder"), placeholders):
        new.meta = dict(old.meta)
    unused = [node for node in module.graph.find_nodes(op="placeholder") if not node.users]
    inputs = tuple(name for name in inputs if name not in {node.name for node in unused})
    for node in unused:
        module.graph.erase_node(node)
    module.recompile()
    return Respelled(dataclasses.replace(part, graph_module=module, inputs=inputs), randoms)


class _Respelling(fx.Interpreter):
    """given: random numbers; found: values of the nodes in `wanted`."""

    def __init__(
        self, module: fx.GraphModule, positions: Mapping[str, int], wanted: set[str]
    ) -> None:
        super().__init__(module)
        self._positions, self._wanted = positions, wanted
        self.given: tuple[torch.Tensor, ...] = ()
        self.found: dict[str, Any] = {}

    def run_node(self, node: fx.Node) -> Any:
        if _is_check(node):
            return None
        value = self._value(node)
        if node.name in self._wanted:
            self.found[node.name] = value
        return value

    def _value(self, node: fx.Node) -> Any:
        replacement = _TABLE.get(node.target) or RANDOM.get(node.target)
        if node.op != "call_function" or replacement is None:
            return super().run_node(node)
        with self._set_current_node(node):
            arguments, keywords = self.fetch_args_kwargs_from_env(node)
            if node.name in self._positions:
                keywords = {**keywords, "random": self.given[self._positions[node.name]]}
            value = replacement(*arguments, **keywords)
        if value is NotImplemented:
            return super().run_node(node)
        taken = {id(a) for a in arguments}
        fresh = [v.clone() if id(v) in taken else v for v in _listed(value)]
        fresh = [_laid_out(*pair) for pair in zip(fresh, _listed(node.meta["val"]))]
        return type(value)(fresh) if isinstance(value, (tuple, list)) else fresh[0]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _laid_out(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """With the strides of the call that it replaces, on which views behind it depend."""
    order = memory_order(like.shape, like.stride())
    if value.stride() == like.stride() or order is None or not value.numel():
        return value
    back = [order.index(dim) for dim in range(len(order))]
    packed = value.permute(order).clone(memory_format=torch.contiguous_format)
    return packed.permute(back)


def _is_check(node: fx.Node) -> bool:
    return str(node.target) in _CHECKS


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")


def _renamed(traced: fx.GraphModule, inputs: tuple[str, ...], results: list[str]) -> fx.GraphModule:
    """A copy whose placeholders and results have these names."""
    returned = traced.graph.output_node().args[0]
    names = dict(zip(traced.graph.find_nodes(op="placeholder"), inputs, strict=True))
    names |= {node: name for node, name in zip(returned, results) if node not in names}
    taken = set(names.values())
    graph, copies = fx.Graph(), {}
    for node in traced.graph.nodes:
        if node.op == "output":
            continue
        name = names.get(node) or (f"{node.name}_inner" if node.name in taken else node.name)
        arguments, keywords = fx.map_arg((node.args, node.kwargs), copies.__getitem__)
        target = name if node.op == "placeholder" else node.target
        copies[node] = graph.create_node(node.op, target, arguments, keywords, name=name)
        copies[node].meta = dict(node.meta)
    graph.output(tuple(copies[node] for node in returned))
    return fx.GraphModule(traced, graph)
