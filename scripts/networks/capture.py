"""A PyTorch model as the modules of its NPU regions, without compiling them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from mlir_npu.errors import OptionsError, RegionCompileError
from mlir_npu.lowering.region_modules import RegionModule, collect_modules
from mlir_npu.lowering.report import collect
from mlir_npu.scripts.networks import zoo


class NoSuchModel(ValueError):
    """The name is no network of the zoo and no package.module:function."""


MODEL_ERRORS = (NoSuchModel, OptionsError, RegionCompileError)


@dataclass(frozen=True)
class Captured:
    """Regions in the order of compilation; nodes of the model that are not in one."""

    regions: tuple[RegionModule, ...]
    host_nodes: int


def capture(name: str, shapes: Sequence[Sequence[int]], target: str) -> Captured:
    """Regions of a network of the zoo, or of what `package.module:function` returns.

    shapes: of the inputs, empty for those of the zoo. Raises NoSuchModel, and what the model does.
    """
    build, inputs = _find(name)
    if not shapes and inputs is None:
        raise NoSuchModel(f"'{name}' needs the shape of its inputs, such as --input 1x3x224x224")
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(*shape, generator=generator) for shape in shapes] or inputs()
    return capture_model(build().eval(), given, target)


def capture_model(model: nn.Module, inputs: Sequence[torch.Tensor], target: str | Path) -> Captured:
    """Regions of one call of a model, without gradients."""
    torch._dynamo.reset()
    options = {"target": target, "fallback": "eager"}
    compiled = torch.compile(model, backend="mlir_npu", options=options)
    with torch.no_grad(), collect() as reports, collect_modules() as modules:
        compiled(*inputs)
    placed = sum(p.node_count for r in reports for p in r.parts if p.place == "host")
    return Captured(tuple(modules), placed)


def _find(name: str) -> tuple[Callable[[], nn.Module], Callable | None]:
    if name.lower() in zoo.BY_NAME:
        network = zoo.BY_NAME[name.lower()]
        return network.build, network.inputs
    module_name, colon, function = name.partition(":")
    if not colon:
        known = ", ".join(zoo.BY_NAME)
        raise NoSuchModel(
            f"'{name}' is no file, no network ({known}) and no package.module:function"
        )
    try:
        return getattr(importlib.import_module(module_name), function), None
    except (ImportError, AttributeError) as error:
        raise NoSuchModel(f"'{name}': {error}") from error
