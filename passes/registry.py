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

import difflib
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NoReturn, get_type_hints

from mlir_npu.dialect.bindings import ir

_INFRASTRUCTURE = frozenset({"registry", "pass_manager", "opt_driver", "pipelines", "verify_stage"})
_PASSES: dict[str, Pass] = {}


class PassFailure(Exception):
    """A pass could not do its work; the cause was emitted as a located diagnostic."""


class OptionError(ValueError):
    """A pass was given an option or a value that it does not have."""


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
    """Decorator: make a function addressable as `name` in textual pipelines."""

    def decorate(function: Callable[[ir.Operation, Any], None]) -> Callable:
        module = importlib.import_module(function.__module__)
        summary = (module.__doc__ or function.__doc__ or "").strip().split("\n")[0]
        _PASSES[name] = Pass(name, function, options_class, summary, function.__module__)
        return function

    return decorate


def all_passes() -> dict[str, Pass]:
    """Every pass of the package by name, in alphabetical order."""
    package = importlib.import_module("mlir_npu.passes")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.ispkg and info.name not in _INFRASTRUCTURE:
            importlib.import_module(f"mlir_npu.passes.{info.name}")
    return dict(sorted(_PASSES.items()))


def find_pass(name: str) -> Pass | None:
    """The pass called `name`, or None if it is not one of ours; imports only the file it lives in."""
    if name not in _PASSES:
        module = f"mlir_npu.passes.{name.replace('-', '_')}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
    return _PASSES.get(name)


def fail(operation: ir.Operation, message: str) -> NoReturn:
    """Emit `message` as an error at `operation` and give up the pass."""
    operation.location.emit_error(message)
    raise PassFailure(message)


def parse_options(entry: Pass, text: str) -> Any:
    """Options from pipeline text such as `buffers=2 serial tile=8,16`; types come from the dataclass."""
    hints = get_type_hints(entry.options_class)
    known = [field.name for field in fields(entry.options_class)]
    values = {}
    for item in text.split():
        key, has_value, value = item.partition("=")
        key = key.replace("-", "_")
        if key not in known:
            raise OptionError(_unknown_option(entry.name, key, known))
        values[key] = _convert(entry.name, key, hints[key], value if has_value else "true")
    return entry.options_class(**values)


def _unknown_option(pass_name: str, key: str, known: list[str]) -> str:
    if not known:
        return f"pass '{pass_name}' has no options, got '{key}'"
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(known)}"
    return f"pass '{pass_name}' has no option '{key}'{hint}"


def _convert(pass_name: str, key: str, kind: Any, value: str) -> Any:
    try:
        if kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}[value]
        if kind is int:
            return int(value)
        if kind is str:
            return value
        return tuple(int(part) for part in value.split(","))
    except (KeyError, ValueError):
        expected = getattr(kind, "__name__", str(kind))
        raise OptionError(
            f"option '{key}' of pass '{pass_name}' must be a {expected}, got '{value}'"
        ) from None
