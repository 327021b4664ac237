"""What all units of a program add to while it is exported."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir_npu.export.part_code import PartCode
from mlir_npu.export.plan_steps import Host
from mlir_npu.export.values import Values, Weights
from mlir_npu.options import Options


@dataclass(frozen=True)
class CompiledPart:
    """name: unique in the program; ops: its ATen calls."""

    name: str
    unit: str
    code: PartCode
    ops: tuple[str, ...]


@dataclass
class Collected:
    """prefix: of symbols; weights: parameters and constants; left: calls without machine code."""

    prefix: str
    options: Options
    values: Values = field(default_factory=Values)
    weights: Weights = field(default_factory=Weights)
    parts: list[CompiledPart] = field(default_factory=list)
    left: list[Host] = field(default_factory=list)
