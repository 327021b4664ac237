"""`program.export(directory)`, for programs of all kinds."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from mlir_npu.errors import ExportError
from mlir_npu.export.files import LEVELS, file_names, write_program
from mlir_npu.export.program import Exportable, export_program


def export_to(
    directory: str | Path,
    program: Exportable,
    *,
    name: str,
    levels: Collection[str],
    host_calls: bool,
) -> Path:
    """Write the program; the path of its plan. Raises ExportError, before anything is written."""
    if not name.isidentifier() or not name.isascii():
        raise ExportError(f"{name!r} is no name for C: letters, digits and _, no digit first")
    unknown = [level for level in levels if level not in LEVELS]
    if unknown:
        raise ExportError(f"no level is called {unknown[0]!r}; there are {', '.join(LEVELS)}")
    exported = export_program(program, name, file_names(name, levels), host_calls)
    return write_program(exported, Path(directory), levels)
