"""A PyTorch model as the modules of its NPU regions, without compiling them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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


class ModelFailure(ValueError):
    """The code of a model, or the model on these inputs, raised an exception."""


MODEL_ERRORS = (NoSuchModel, ModelFailure, OptionsError, RegionCompileError)


@dataclass(frozen=True)
class Captured:
    """Regions in the order of compilation; nodes of the model that are not in one."""

    regions: tuple[RegionModule, ...]
    host_nodes: int


def capture(name: str, shapes: Sequence[Sequence[int]], target: str) -> Captured:
    """Regions of a network of the zoo, or of what `package.module:function` returns.

    shapes: of the inputs, empty for those of the zoo. Raises what is in MODEL_ERRORS.
    """
    build, inputs = _find(name)
    if not shapes and inputs is None:
        raise NoSuchModel(f"'{name}' needs the shape of its inputs, such as --input 1x3x224x224")
    with _failures(f"'{name}' failed to make a model"):
        model = build()
    if not isinstance(model, nn.Module):
        raise NoSuchModel(f"'{name}' must return a torch.nn.Module, got {type(model).__name__}")
    model.eval()
    generator = torch.Generator().manual_seed(0)
    with _failures("the inputs could not be made"):
        given = [torch.randn(*shape, generator=generator) for shape in shapes] or inputs()
    listed = ", ".join("x".join(map(str, tensor.shape)) for tensor in given)
    with _failures(f"'{name}' failed on inputs of {listed}"), torch.no_grad():
        model(*given)
    with _failures(f"'{name}' could not be compiled for inputs of {listed}"):
        return capture_model(model, given, target)


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """Any exception inside, as a ModelFailure of one line."""
    try:
        yield
    except MODEL_ERRORS:
        raise
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), "no message")
        raise ModelFailure(f"{what}: {type(error).__name__}: {first}") from error


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
    with _failures(f"'{name}'"):
        return getattr(importlib.import_module(module_name), function), None
