"""What programs have in common: they are written for other languages."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir_npu.export.program import Exportable


class Exporting:
    """A program that `exportable` describes."""

    def exportable(self) -> Exportable:
        """What is exported. Raises ExportError."""
        raise NotImplementedError

    def export(
        self,
        directory: str | Path,
        *,
        name: str = "program",
        levels: Collection[str] = ("torch", "linalg", "npu", "llvm", "object"),
        units: Collection[str] | None = None,
        host_calls: bool = False,
    ) -> Path:
        """Write the program, gradients included, for other languages: IR, objects, a C header,
        weights as they are now, and plan.json, whose path is returned; docs/export.md describes
        them.

        name: of the header and in front of every function; levels: of the IR that is written, and
        "object" for all that is needed to run; units: names of those to write, with a plan of them
        alone. Calls that become no machine code raise ExportError; with host_calls they are steps
        of the plan instead, for its reader to compute.
        """
        from mlir_npu.export.to_directory import export_to

        return export_to(
            directory,
            self.exportable(),
            name=name,
            levels=levels,
            units=units,
            host_calls=host_calls,
        )
