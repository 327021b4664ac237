"""Tables, as TOML and attributes hold them <-> nested frozen dataclasses.

A number in a dataclass names its largest value: `rows: int = up_to(64)`.
"""

from __future__ import annotations

import difflib
import functools
from dataclasses import field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:  # a target can be read without loading MLIR
    from mlir_npu.dialect.bindings import ir


class TargetError(ValueError):
    """A target that does not exist, or a target file with a bad key or value."""


def up_to(most: int) -> int:
    """A number from 1 to `most`, the largest that the compiler can honour."""
    return field(metadata={"most": most})


_hints = functools.cache(get_type_hints)  # every pass asks for the target


def from_table(table: dict[str, Any], kind: type, origin: str, prefix: str) -> Any:
    """A `kind` with the values of `table`, which must have its keys and no others. origin: what the
    table is, for messages; prefix: of its keys in these. Raises TargetError."""
    hints = _hints(kind)
    known = [field.name for field in fields(kind)]
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{prefix}{near[0]}'?" if near else f"known: {', '.join(known)}"
            raise TargetError(f"{origin}: unknown key '{prefix}{key}'; {hint}")
    missing = [key for key in known if key not in table]
    if missing:
        raise TargetError(f"{origin}: missing key '{prefix}{missing[0]}'")
    values = {
        one.name: typed(
            table[one.name], hints[one.name], origin, prefix + one.name, one.metadata.get("most", 0)
        )
        for one in fields(kind)
    }
    try:
        return kind(**values)
    except ValueError as error:
        raise TargetError(f"{origin}: {prefix}{error}") from None


def typed(value: Any, kind: type, origin: str, key: str, most: int = 0) -> Any:
    """`value`, if it is a `kind`; a table as a dataclass, a number only from 1 to `most`. Raises
    TargetError."""
    if is_dataclass(kind):
        if not isinstance(value, dict):
            keys = ", ".join(field.name for field in fields(kind))
            raise TargetError(f"{origin}: '{key}' must be a table of {keys}, got {value!r}")
        return from_table(value, kind, origin, key + ".")
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise TargetError(f"{origin}: '{key}' must be an integer in [1, {most}], got {value!r}")
        return value
    if not isinstance(value, kind):
        expected = {bool: "true or false", str: "text"}[kind]
        raise TargetError(f"{origin}: '{key}' must be {expected}, got {value!r}")
    return value


def overlay(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """Nested tables merged; where both have a value it is that of `top`."""
    merged = dict(base)
    for key, value in top.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = overlay(merged[key], value) if nested else value
    return merged


def to_dictionary(value: Any) -> str:
    """A dataclass, or a value in one, as text of an attribute of MLIR."""
    if is_dataclass(value):
        items = (f"{f.name} = {to_dictionary(getattr(value, f.name))}" for f in fields(value))
        return "{" + ", ".join(items) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value} : i64"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def to_table(attribute: ir.Attribute) -> Any:
    """The inverse of _to_dictionary; attributes that a target does not have stay attributes."""
    from mlir_npu.dialect.bindings import ir

    if isinstance(attribute, ir.DictAttr):
        return {item.name: to_table(item.attr) for item in attribute}
    return getattr(attribute, "value", attribute)
