"""Turns the option text of a pipeline element into the options dataclass of its pass."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints


class OptionError(ValueError):
    """A pass was given an option or a value that it does not have."""


def parse_options(pass_name: str, options_class: type, text: str) -> Any:
    """Options from text such as `buffers=2 serial tile=8,16`, typed by the fields of the dataclass.

    A flag without a value is true. The dataclass may refuse values by raising ValueError in its
    `__post_init__`.
    """
    kinds = option_types(options_class)
    values: dict[str, Any] = {}
    for item in text.split():
        name, has_value, value = item.partition("=")
        key = name.replace("-", "_")
        if key not in kinds:
            raise OptionError(_unknown_option(pass_name, name, list(kinds)))
        if key in values:
            raise OptionError(f"option '{name}' of pass '{pass_name}' is given twice")
        values[key] = _convert(pass_name, name, kinds[key], value if has_value else None)
    try:
        return options_class(**values)
    except ValueError as error:
        raise OptionError(f"pass '{pass_name}': {error}") from None


@functools.cache
def option_types(options_class: type) -> dict[str, Any]:
    """Name and type of every option; TypeError if a field has a type that text cannot spell."""
    hints = get_type_hints(options_class)
    kinds = {field.name: hints[field.name] for field in fields(options_class)}
    for name, kind in kinds.items():
        if kind not in _READERS:
            raise TypeError(
                f"{options_class.__name__}.{name} has type {kind}, which is no option type"
            )
    return kinds


def _unknown_option(pass_name: str, name: str, known: list[str]) -> str:
    if not known:
        return f"pass '{pass_name}' has no options, got '{name}'"
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(known)}"
    return f"pass '{pass_name}' has no option '{name}'; {hint}"


def _convert(pass_name: str, name: str, kind: Any, value: str | None) -> Any:
    read, expected = _READERS[kind]
    if value is None and kind is bool:
        return True
    try:
        if value:
            return read(value)
    except (KeyError, ValueError):
        pass  # reported below, together with a missing value
    got = f"'{value}'" if value else "nothing"
    raise OptionError(f"option '{name}' of pass '{pass_name}' must be {expected}, got {got}")


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}

# How each type of option is read, and how errors name it.
_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    bool: (_BOOLEANS.__getitem__, "true or false"),
    int: (int, "an integer"),
    str: (str, "a word"),
    tuple[int, ...]: (lambda text: tuple(map(int, text.split(","))), "integers such as 8,16"),
}
