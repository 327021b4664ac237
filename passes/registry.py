"""The table of our passes: name, function, options, one line of explanation.

A pass is a function of the module operation and of a frozen dataclass of options:

    @dataclass(frozen=True)
    class ChooseTilesOptions:
        buffers: int = 1

    @register_pass("choose-tiles", ChooseTilesOptions)
    def choose_tiles(module: ir.Operation, options: ChooseTilesOptions) -> None: ...

The pass `choose-tiles` lives in `choose_tiles.py`, and its first docstring line is its summary.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.option_parser import option_types

_PASSES: dict[str, Pass] = {}


class PassFailure(Exception):
    """A pass could not do its work; the cause was emitted as a located diagnostic."""


@dataclass(frozen=True)
class NoOptions:
    """Options of a pass that has none."""


@dataclass(frozen=True)
class Pass:
    """One registered pass. `module` is the import name of the file that holds it."""

    name: str
    function: Callable[[ir.Operation, Any], None]
    options_class: type
    summary: str
    module: str


def register_pass(name: str, options_class: type = NoOptions) -> Callable:
    """Decorator: make a function addressable as `name` in textual pipelines.

    The options have fields of type bool, int, str or tuple[int, ...], each with a default.
    """

    def decorate(function: Callable[[ir.Operation, Any], None]) -> Callable:
        option_types(options_class)
        text = sys.modules[function.__module__].__doc__ or function.__doc__ or ""
        summary = text.strip().split("\n")[0]
        _PASSES[name] = Pass(name, function, options_class, summary, function.__module__)
        return function

    return decorate


def all_passes() -> dict[str, Pass]:
    """Every pass of the package by name, in alphabetical order."""
    package = importlib.import_module("mlir_npu.passes")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.ispkg:
            importlib.import_module(f"mlir_npu.passes.{info.name}")
    own = (entry for entry in _PASSES.values() if entry.module.startswith("mlir_npu.passes."))
    return {entry.name: entry for entry in sorted(own, key=lambda entry: entry.name)}


def find_pass(name: str) -> Pass | None:
    """The pass called `name`, None if it is not one of ours; imports only the file it lives in."""
    file = name.replace("-", "_")
    if name not in _PASSES and file.isidentifier() and _is_there(f"mlir_npu.passes.{file}"):
        importlib.import_module(f"mlir_npu.passes.{file}")
    return _PASSES.get(name)


@functools.cache
def _is_there(module: str) -> bool:
    """Asked for every pass of upstream's in every pipeline."""
    return importlib.util.find_spec(module) is not None


def fail(operation: ir.Operation, message: str) -> NoReturn:
    """Emit `message` as an error at `operation` and give up the pass."""
    operation.location.emit_error(message)
    raise PassFailure(message)
