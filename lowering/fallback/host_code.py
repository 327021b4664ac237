"""What runs a part, as data that another process can load: machine code, and calls of ATen as text.

A part is a region; a graph in eager; views around one of them; or a sequence of these.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering import max_pool_gradient  # noqa: F401  (registers what text may call)
from mlir_npu.lowering.fallback.eager import EagerCall
from mlir_npu.lowering.fallback.result_promises import (
    Promise,
    as_promised,
    promises,
)
from mlir_npu.lowering.fallback.split_part import PieceCalls, Step
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.region_code import RegionCode
from mlir_npu.lowering.view_results import ViewCall
from mlir_npu.runtime.generated_region import GeneratedRegion
from mlir_npu.runtime.region import CompiledRegion

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
class MachineCode:
    code: RegionCode
    threads: int

    def load(self, name: str) -> Callable:
        return self.code.load(name, self.threads)


@dataclass(frozen=True)
class HostCode:
    """text: a function `forward(self, ...)`; constants: attributes of `self`;
    promised: what the rest of the program expects of the results."""

    text: str
    constants: Mapping[str, torch.Tensor]
    promised: tuple[Promise | None, ...]

    @classmethod
    def of(cls, module: fx.GraphModule) -> HostCode:
        """Raises HostLoweringError for a graph that text cannot say."""
        made = module.graph.python_code("self")
        unknown = sorted(made.globals.keys() - _GLOBALS.keys() - _UNUSED)
        constants = {
            node.target: getattr(module, node.target, None)
            for node in module.graph.find_nodes(op="get_attr")
        }
        unknown += [n for n, value in constants.items() if not isinstance(value, torch.Tensor)]
        if unknown:
            raise HostLoweringError(f"its graph refers to {', '.join(unknown)}")
        return cls(made.src.strip() + "\n", constants, promises(module))

    def load(self, name: str) -> Callable:
        namespace: dict[str, Any] = dict(_GLOBALS)
        exec(compile(self.text, f"<mlir_npu {name}>", "exec"), namespace)
        forward, promised = namespace["forward"], self.promised
        owner = types.SimpleNamespace(**self.constants)
        return lambda *values: as_promised(forward(owner, *values), promised)


@dataclass(frozen=True)
class ViewsCode:
    views: HostCode
    inner: PartCode

    def load(self, name: str) -> Callable:
        return ViewCall(self.views.load(f"{name}_views"), self.inner.load(name))


@dataclass(frozen=True)
class PiecesCode:
    """steps: with code in the place of the call."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[Any, ...]

    def load(self, name: str) -> Callable:
        steps = tuple(
            replace(step, call=step.call.load(f"{name}_{number}"))
            for number, step in enumerate(self.steps)
        )
        return PieceCalls(self.inputs, steps, self.results)


PartCode = MachineCode | HostCode | ViewsCode | PiecesCode


def code_of(part: Part, call: Callable) -> PartCode:
    """What runs the part now, or where that cannot be kept, its graph in eager. Raises
    HostLoweringError."""
    if isinstance(call, GeneratedRegion):
        raise HostLoweringError("only its code generator can run it")
    try:
        return _code_of(call)
    except TypeError:
        return HostCode.of(part.graph_module)


def _code_of(call: Callable) -> PartCode:
    if isinstance(call, CompiledRegion) and call.code is not None:
        return MachineCode(call.code, call.num_threads)
    if isinstance(call, EagerCall):
        return HostCode.of(call.graph_module)
    if isinstance(call, ViewCall):
        return ViewsCode(HostCode.of(call.views), _code_of(call.inner))
    if isinstance(call, PieceCalls):
        steps = tuple(replace(step, call=_code_of(step.call)) for step in call.steps)
        return PiecesCode(call.inputs, steps, call.results)
    raise TypeError(f"a {type(call).__name__} cannot be kept")


def texts(name: str, code: PartCode) -> Iterator[tuple[str, HostCode]]:
    """All text in it, with names."""
    if isinstance(code, HostCode):
        yield name, code
    elif isinstance(code, ViewsCode):
        yield f"{name}_views", code.views
        yield from texts(name, code.inner)
    elif isinstance(code, PiecesCode):
        for number, step in enumerate(code.steps):
            yield from texts(f"{name}_{number}", step.call)


def with_texts(name: str, code: PartCode, found: Mapping[str, HostCode]) -> PartCode:
    """The same with other text, by the names that `texts` gives."""
    if isinstance(code, HostCode):
        return found[name]
    if isinstance(code, ViewsCode):
        return ViewsCode(found[f"{name}_views"], with_texts(name, code.inner, found))
    if isinstance(code, PiecesCode):
        steps = tuple(
            replace(step, call=with_texts(f"{name}_{number}", step.call, found))
            for number, step in enumerate(code.steps)
        )
        return replace(code, steps=steps)
    return code
