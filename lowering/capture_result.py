"""How a program's result is put together from what its graph returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils import _pytree as pytree

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.capture_inputs import CONSTANTS


@dataclass(frozen=True)
class Leaf:
    """source: result `index` of the graph, input leaf `index`, tensor `index` of the model, or the
    constant `value`."""

    source: Literal["result", "input", "model", "constant"]
    index: int = 0
    value: Any = None


@dataclass(frozen=True)
class ResultPlan:
    tree: pytree.TreeSpec
    leaves: tuple[Leaf, ...]

    def builder(self) -> Callable[[Sequence, Sequence, Sequence], Any]:
        """A function of the graph's results, the input leaves and the model's tensors."""
        in_order = tuple(Leaf("result", i) for i in range(len(self.leaves)))
        if self.leaves == in_order and self.tree.is_leaf():
            return lambda results, inputs, tensors: results[0]
        if self.leaves == in_order and self.tree == pytree.tree_structure(tuple(self.leaves)):
            return lambda results, inputs, tensors: tuple(results)
        return self._build

    def _build(self, results: Sequence, inputs: Sequence, tensors: Sequence) -> Any:
        places = {"result": results, "input": inputs, "model": tensors}
        leaves = [
            leaf.value if leaf.source == "constant" else places[leaf.source][leaf.index]
            for leaf in self.leaves
        ]
        return pytree.tree_unflatten(leaves, self.tree)


def plan_result(
    result: Any, graph: Sequence[Any], inputs: Sequence[Any], tensors: Sequence[torch.Tensor]
) -> ResultPlan:
    """From the result for stand-ins. Raises CaptureError for what cannot be built again."""
    known = {id(value): Leaf("model", index) for index, value in enumerate(tensors)}
    known |= {
        id(value): Leaf("input", index)
        for index, value in enumerate(inputs)
        if isinstance(value, torch.Tensor)
    }
    known |= {id(value): Leaf("result", index) for index, value in enumerate(graph)}
    paths, tree = pytree.tree_flatten_with_path(result)
    return ResultPlan(tree, tuple(_leaf(path, value, known) for path, value in paths))


def _leaf(path: tuple, value: Any, known: dict[int, Leaf]) -> Leaf:
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, CONSTANTS):
        return Leaf("constant", value=value)
    name = type(value).__name__
    how = "register the class with torch.utils._pytree"
    if dataclasses.is_dataclass(value):
        how = f"call torch.export.register_dataclass({name}) once"
    raise CaptureError(
        f"its result{pytree.keystr(path)} is a {name}, which a program cannot build again: {how}, "
        "or return tensors, numbers, text and containers"
    )
