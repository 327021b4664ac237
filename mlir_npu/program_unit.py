"""The units of a program, as people look at them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir_npu.lowering.program_plan import Unit, Value
from mlir_npu.lowering.report import GraphReport

if TYPE_CHECKING:
    from mlir_npu.stitched import StitchedProgram


@dataclass(frozen=True)
class ProgramUnit:
    """One compiled graph of a program.

    source: the Python function that calls its parts; tangents: of a backward, what it takes beside
    what the forward `saved`; each is `of` a value whose label names module and line.
    """

    plan: Unit
    source: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value | None, ...]
    saved: tuple[Value, ...]
    tangents: tuple[Value, ...]
    report: GraphReport
    _program: StitchedProgram = dataclasses.field(repr=False, compare=False)

    @classmethod
    def of(cls, program: StitchedProgram, unit: Unit) -> ProgramUnit:
        stitched, values = program.stitched, program.plan.values
        inputs = tuple(values[name] for name in unit.inputs)
        return cls(
            plan=unit,
            source=stitched.unit_sources[unit.name],
            inputs=inputs,
            outputs=tuple(values[name] if name else None for name in unit.outputs),
            saved=tuple(values[name] for name in unit.saved),
            tangents=tuple(value for value in inputs if value.kind in ("tangent", "gradient")),
            report=stitched.reports[unit.name],
            _program=program,
        )

    @property
    def name(self) -> str:
        return self.plan.name

    def ir(self, level: str) -> dict[str, str]:
        """Text of MLIR for every part, by its name. level: "torch", "linalg", "npu" (which parts on
        the host do not have) or "llvm". It is what `export` writes; parts are compiled again for
        it. Calls that become no machine code are left out. Raises ExportError."""
        from mlir_npu.export.to_directory import unit_ir

        return unit_ir(self._program.exportable(), self.name, level)

    def __str__(self) -> str:
        where = f" at {self.plan.location}" if self.plan.location else ""
        lines = [f"{self.name} ({self.plan.origin}{where})"]
        lines += [f"  takes {value.name}: {value.label}" for value in self.inputs]
        lines += [f"  makes {value.name}: {value.label}" for value in self.outputs if value]
        return "\n".join(lines)
