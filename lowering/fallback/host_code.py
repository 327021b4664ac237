"""A host part as text: calls of ATen that run in eager, in any process."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering.fallback.result_strides import (
    Strides,
    promised_strides,
    with_promised_strides,
)
from mlir_npu.lowering.plan import Part

# what the text of a graph may name beside its own values
_GLOBALS = {
    "torch": torch,
    "device": torch.device,
    "inf": float("inf"),
    "nan": float("nan"),
    "NoneType": type(None),
}
_UNUSED = {"fx_pytree", "pytree"}  # always offered, and needed for nested arguments only


@dataclass(frozen=True)
class HostCode:
    """text: a function `forward(self, ...)`; constants: attributes of `self`; strides: of the
    results, as the rest of the program expects them."""

    text: str
    constants: Mapping[str, torch.Tensor]
    strides: tuple[Strides, ...]

    @classmethod
    def of(cls, part: Part) -> HostCode:
        """Raises HostLoweringError for a part that text cannot say."""
        module = part.graph_module
        made = module.graph.python_code("self")
        unknown = sorted(made.globals.keys() - _GLOBALS.keys() - _UNUSED)
        constants = {
            node.target: getattr(module, node.target, None)
            for node in module.graph.find_nodes(op="get_attr")
        }
        unknown += [n for n, value in constants.items() if not isinstance(value, torch.Tensor)]
        if unknown:
            raise HostLoweringError(f"{part.name} refers to {', '.join(unknown)}")
        return cls(made.src.strip() + "\n", constants, promised_strides(module))

    def load(self) -> Callable[..., tuple]:
        namespace: dict[str, Any] = dict(_GLOBALS)
        exec(compile(self.text, "<mlir_npu host part>", "exec"), namespace)
        forward, strides = namespace["forward"], self.strides
        owner = types.SimpleNamespace(**self.constants)

        def call(*arguments: Any) -> tuple:
            return with_promised_strides(forward(owner, *arguments), strides)

        return call
