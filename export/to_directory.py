"""`program.export(directory)`, and the IR of one unit."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from mlir_npu.errors import ExportError
from mlir_npu.export.files import LEVELS, file_names, write_program
from mlir_npu.export.program import Exportable, export_program
from mlir_npu.export.some_units import with_units


def export_to(
    directory: str | Path,
    program: Exportable,
    *,
    name: str,
    levels: Collection[str],
    units: Collection[str] | None,
    host_calls: bool,
) -> Path:
    """Write the program; the path of its plan. Raises ExportError, before anything is written."""
    if not name.isidentifier() or not name.isascii():
        raise ExportError(f"{name!r} is no name for C: letters, digits and _, no digit first")
    for what, names in (("levels", levels), ("units", units)):
        if isinstance(names, str):
            raise ExportError(f"{what} is a list of names, and {names!r} is one: [{names!r}]")
    for level in levels:
        _check_level(level, LEVELS)
    if units is not None:
        program = with_units(program, units)
    exported = export_program(program, name, file_names(name, levels), host_calls)
    return write_program(exported, Path(directory), levels)


def unit_ir(program: Exportable, unit: str, level: str) -> dict[str, str]:
    """Text by part. Raises ExportError."""
    levels = tuple(name for name in LEVELS if name != "object")
    _check_level(level, levels)
    exported = export_program(with_units(program, [unit]), "program", {}, host_calls=True)
    return {
        part.name.removeprefix(f"{unit}."): part.code.ir[level]
        for part in exported.parts
        if level in part.code.ir
    }


def _check_level(level: str, levels: Collection[str]) -> None:
    if level not in levels:
        raise ExportError(f"no level is called {level!r}; there are {', '.join(levels)}")
