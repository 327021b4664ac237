"""Run a graph with integers where it dequantises, computes and quantises.

A dequantised tensor stays the integers that it was made from (`Dequantized`) as long as what reads
it is known here: convolutions, matrix products, averages, maxima, and what only moves elements. All
else gets the floats. Weights must have zero points of 0: as numbers, or in a placeholder that is
said to hold zeros, which the caller then has to make sure of.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from torch import Tensor, fx
from torch.utils import _pytree as pytree

from mlir_npu.lowering.quantized_rules import RULES
from mlir_npu.lowering.quantized_values import as_tensor
from mlir_npu.lowering.repeated_calls import RepeatedCalls
from mlir_npu.lowering.support.rules import HOLDS_ZEROS


class QuantizedInterpreter(RepeatedCalls):
    """`used_zeros`: names of placeholders whose zeros a computation relies on."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.used_zeros: list[str] = []
        self._zeros: list[tuple[Tensor, str]] = []

    def run_node(self, node: fx.Node) -> object:
        value = super().run_node(node)
        if node.op == "placeholder" and node.meta.get(HOLDS_ZEROS):
            self._zeros.append((value, node.name))
        return value

    def call_function(self, target: Callable, args: tuple, kwargs: dict) -> object:
        if target is operator.getitem:
            return args[0][args[1]]
        rule = RULES.get(str(target))
        if rule is not None:
            bound = _bound(target, args, kwargs)
            value = rule(self, **bound)
            if value is not None:
                return value
        args, kwargs = pytree.tree_map(as_tensor, (args, kwargs))
        return super().call_function(target, args, kwargs)

    def output(self, target: str, args: tuple, kwargs: dict) -> object:
        return super().output(target, pytree.tree_map(as_tensor, args), kwargs)

    def holds_zeros(self, points: Tensor | None) -> bool:
        """Whether all zero points are 0, as far as anybody said."""
        name = next((name for tensor, name in self._zeros if tensor is points), None)
        if name is not None and name not in self.used_zeros:
            self.used_zeros.append(name)
        return points is None or name is not None


def _bound(target: Callable, args: tuple, kwargs: dict) -> dict[str, object]:
    schema = target._schema.arguments
    bound = {argument.name: argument.default_value for argument in schema}
    bound.update(zip((argument.name for argument in schema), args, strict=False))
    return {**bound, **kwargs}
