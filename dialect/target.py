"""What a target machine is: memories, units and rates, read from TOML into frozen dataclasses.

A target travels with the IR as the module attribute `npu.target = #npu.target<{...}>`, so that a
dumped module says for which machine it was scheduled and passes need no options to find out.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from mlir_npu.dialect.host_cpu import describe_host_cpu
from mlir_npu.dialect.target_table import (
    TargetError,
    from_table,
    overlay,
    to_dictionary,
    to_table,
    typed,
    up_to,
)

if TYPE_CHECKING:  # a target can be read without loading MLIR
    from mlir_npu.dialect.bindings import ir

ATTRIBUTE_NAME = "npu.target"


@dataclass(frozen=True)
class Memory:
    """One on-chip memory. bytes: capacity; alignment: of every buffer in it, in bytes."""

    bytes: int = up_to(1 << 40)
    alignment: int = up_to(1 << 20)

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

    lanes: int = up_to(1 << 10)
    registers: int = up_to(1 << 10)


@dataclass(frozen=True)
class MacsPerCell:
    """Multiply-accumulates of one cell of the matrix unit per cycle, by type of the factors."""

    f32: int = up_to(1 << 16)
    f16: int = up_to(1 << 16)
    i8: int = up_to(1 << 16)


@dataclass(frozen=True)
class MatrixUnit:
    """rows (input channels) x cols (output channels) cells, of `macs_per_cell` each."""

    rows: int = up_to(1 << 16)
    cols: int = up_to(1 << 16)
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

    channels: int = up_to(64)
    setup_cycles: int = up_to(1 << 20)
    bytes_per_cycle: int = up_to(1 << 20)
    max_rank: int = up_to(64)


@dataclass(frozen=True)
class Target:
    """A machine. `cached`: sram is a CPU cache, so a move that would only copy may be left out."""

    name: str
    description: str
    cached: bool
    cores: int = up_to(1 << 16)
    clock_hz: int = up_to(1 << 40)
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

        return ir.Attribute.parse(f"#npu.target<{to_dictionary(self)}>", context)

    @staticmethod
    def from_attribute(attribute: ir.Attribute) -> Target:
        """The target that `to_attribute` wrote. Raises TargetError for any other attribute."""
        from mlir_npu.dialect.attributes import TargetAttr
        from mlir_npu.dialect.bindings import ir

        if not isinstance(attribute, TargetAttr):
            raise TargetError(f"{ATTRIBUTE_NAME}: must be a #npu.target, got {attribute}")
        table = to_table(ir.DictAttr(attribute.properties))
        return from_table(table, Target, ATTRIBUTE_NAME, "")


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
    if typed(table.pop("detect", False), bool, origin, "detect"):
        table = overlay(describe_host_cpu(), table)
    return from_table(table, Target, origin, "")


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
