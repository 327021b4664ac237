"""What a target machine is: memories, units and rates, read from TOML into frozen dataclasses.

A target travels with the IR as the module attribute `npu.target = #npu.target<{...}>`, so that a
dumped module says for which machine it was scheduled and passes need no options to find out.
"""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from mlir_npu.dialect.host_cpu import describe_host_cpu

if TYPE_CHECKING:  # a target can be read without loading MLIR
    from mlir_npu.dialect.bindings import ir

ATTRIBUTE_NAME = "npu.target"


def _up_to(most: int) -> int:
    """A number from 1 to `most`, the largest that the compiler can honour."""
    return field(metadata={"most": most})


class TargetError(ValueError):
    """A target that does not exist, or a target file with a bad key or value."""


@dataclass(frozen=True)
class Memory:
    """One on-chip memory. bytes: capacity; alignment: of every buffer in it, in bytes."""

    bytes: int = _up_to(1 << 40)
    alignment: int = _up_to(1 << 20)

    def __post_init__(self):
        if self.alignment & (self.alignment - 1):
            raise ValueError(f"alignment must be a power of two, got {self.alignment}")
        if self.alignment > self.bytes:
            raise ValueError(
                f"alignment must be at most the {self.bytes} bytes of the memory, "
                f"got {self.alignment}"
            )


@dataclass(frozen=True)
class VectorUnit:
    """lanes: f32 elements per vector; registers: architectural vector registers."""

    lanes: int = _up_to(1 << 10)
    registers: int = _up_to(1 << 10)


@dataclass(frozen=True)
class MacsPerCell:
    """Multiply-accumulates of one cell of the matrix unit per cycle, by type of the factors."""

    f32: int = _up_to(1 << 16)
    f16: int = _up_to(1 << 16)
    i8: int = _up_to(1 << 16)


@dataclass(frozen=True)
class MatrixUnit:
    """rows (input channels) x cols (output channels) cells, of `macs_per_cell` each."""

    rows: int = _up_to(1 << 16)
    cols: int = _up_to(1 << 16)
    macs_per_cell: MacsPerCell

    def rate(self, element_type: str) -> int:
        """Multiply-accumulates per cell and cycle for factors of an MLIR type such as "f32".

        Types of the same width go at the same rate; what is wider than f32 at that of f32.
        """
        rates = self.macs_per_cell
        return {8: rates.i8, 16: rates.f16}.get(_width(element_type), rates.f32)


@dataclass(frozen=True)
class Dma:
    """channels per direction; setup_cycles and max_rank of a move; bytes_per_cycle of a channel."""

    channels: int = _up_to(64)
    setup_cycles: int = _up_to(1 << 20)
    bytes_per_cycle: int = _up_to(1 << 20)
    max_rank: int = _up_to(64)


@dataclass(frozen=True)
class Target:
    """A machine. `cached`: sram is a CPU cache, so a move that would only copy may be left out."""

    name: str
    description: str
    cached: bool
    cores: int = _up_to(1 << 16)
    clock_hz: int = _up_to(1 << 40)
    sram: Memory
    acc: Memory
    vector: VectorUnit
    matrix: MatrixUnit
    dma: Dma

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name must not be empty")

    def to_attribute(self, context: ir.Context) -> ir.Attribute:
        """`#npu.target<{...}>` with every number of the target."""
        from mlir_npu.dialect.bindings import ir

        return ir.Attribute.parse(f"#npu.target<{_to_dictionary(self)}>", context)

    @staticmethod
    def from_attribute(attribute: ir.Attribute) -> Target:
        """The target that `to_attribute` wrote. Raises TargetError for any other attribute."""
        from mlir_npu.dialect.attributes import TargetAttr
        from mlir_npu.dialect.bindings import ir

        if not isinstance(attribute, TargetAttr):
            raise TargetError(f"{ATTRIBUTE_NAME}: must be a #npu.target, got {attribute}")
        table = _to_table(ir.DictAttr(attribute.properties))
        return _from_table(table, Target, ATTRIBUTE_NAME, "")


def available_targets() -> list[str]:
    """Names of the targets that ship with the package."""
    files = resources.files("mlir_npu.dialect.targets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_target(name_or_path: str | Path) -> Target:
    """A shipped target by name, or any TOML file by path. Raises TargetError."""
    text, origin = _read(str(name_or_path))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TargetError(f"{origin}: {error}") from None
    if _value(table.pop("detect", False), bool, origin, "detect"):
        table = _overlay(describe_host_cpu(), table)
    return _from_table(table, Target, origin, "")


def target_of(module: ir.Operation) -> Target:
    """The target of a module; without a good one a located diagnostic and TargetError."""
    try:
        if ATTRIBUTE_NAME not in module.attributes:
            raise TargetError(
                f"the module has no {ATTRIBUTE_NAME} attribute; "
                "add one, or pass --target to npu-opt"
            )
        return Target.from_attribute(module.attributes[ATTRIBUTE_NAME])
    except TargetError as error:
        module.location.emit_error(str(error))
        raise


def set_target(module: ir.Operation, target: Target) -> None:
    """Write `target` into the module."""
    module.attributes[ATTRIBUTE_NAME] = target.to_attribute(module.context)


def set_threads(module: ir.Operation, count: int | None) -> None:
    """Fix the number of threads of a module; None leaves it to torch."""
    from mlir_npu.dialect.bindings import ir

    if count:
        i64 = ir.IntegerType.get_signless(64)
        module.attributes["npu.num_threads"] = ir.IntegerAttr.get(i64, count)


def _width(element_type: str) -> int:
    digits = re.match(r"[a-z]+(\d+)", element_type)
    return int(digits.group(1)) if digits else 32


def _read(name_or_path: str) -> tuple[str, str]:
    if name_or_path in available_targets():
        file = resources.files("mlir_npu.dialect.targets") / f"{name_or_path}.toml"
        return file.read_text(), f"target '{name_or_path}'"
    path = Path(name_or_path)
    if path.suffix == ".toml" and path.is_file():
        return _text_of(path), f"target file '{path}'"
    near = difflib.get_close_matches(name_or_path, available_targets(), n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(available_targets())}"
    raise TargetError(f"no target is called '{name_or_path}' and no .toml file is there; {hint}")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TargetError(f"target file '{path}': it is not UTF-8 text: {error.reason}") from None
    except OSError as error:
        raise TargetError(f"target file '{path}': {error.strerror}") from None


def _overlay(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _overlay(merged[key], value) if nested else value
    return merged


_hints = functools.cache(get_type_hints)  # every pass asks for the target


def _from_table(table: dict[str, Any], kind: type, origin: str, prefix: str) -> Any:
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
        one.name: _value(
            table[one.name], hints[one.name], origin, prefix + one.name, one.metadata.get("most", 0)
        )
        for one in fields(kind)
    }
    try:
        return kind(**values)
    except ValueError as error:
        raise TargetError(f"{origin}: {prefix}{error}") from None


def _value(value: Any, kind: type, origin: str, key: str, most: int = 0) -> Any:
    """`value` for `key`; a number of at most `most`."""
    if is_dataclass(kind):
        if not isinstance(value, dict):
            keys = ", ".join(field.name for field in fields(kind))
            raise TargetError(f"{origin}: '{key}' must be a table of {keys}, got {value!r}")
        return _from_table(value, kind, origin, key + ".")
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise TargetError(f"{origin}: '{key}' must be an integer in [1, {most}], got {value!r}")
        return value
    if not isinstance(value, kind):
        expected = {bool: "true or false", str: "text"}[kind]
        raise TargetError(f"{origin}: '{key}' must be {expected}, got {value!r}")
    return value


def _to_dictionary(value: Any) -> str:
    if is_dataclass(value):
        items = (f"{f.name} = {_to_dictionary(getattr(value, f.name))}" for f in fields(value))
        return "{" + ", ".join(items) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value} : i64"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _to_table(attribute: ir.Attribute) -> Any:
    """The inverse of _to_dictionary; attributes that a target does not have stay attributes."""
    from mlir_npu.dialect.bindings import ir

    if isinstance(attribute, ir.DictAttr):
        return {item.name: _to_table(item.attr) for item in attribute}
    return getattr(attribute, "value", attribute)
