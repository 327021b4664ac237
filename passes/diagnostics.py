"""Diagnostics of MLIR as plain data that outlives the context."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir

# Diagnostics attached to exceptions carry plain locations, of which only the text tells the line.
_FILE_LINE = re.compile(r'":(\d+):\d+')
_PLACE = re.compile(r'loc\("(.*)":(\d+):(\d+)\)')


@dataclass(frozen=True)
class Diagnostic:
    """One message. severity: error, warning, note; line: None without a location."""

    severity: str
    location: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = _PLACE.fullmatch(self.location)
        where = "{}:{}:{}".format(*place.groups()) if place else self.location
        return f"{where}: {self.severity}: {self.message}"


@contextmanager
def collected_diagnostics(context: ir.Context) -> Iterator[list[Diagnostic]]:
    """Diagnostics of the context go into the list, neither to stderr nor into exceptions."""
    diagnostics: list[Diagnostic] = []
    handler = context.attach_diagnostic_handler(lambda one: _collect(one, diagnostics))
    emitting = context.emit_error_diagnostics
    context.emit_error_diagnostics = True
    try:
        yield diagnostics
    finally:
        context.emit_error_diagnostics = emitting
        handler.detach()


def as_diagnostics(error: Exception) -> list[Diagnostic]:
    """What an exception of the bindings says, as diagnostics; never empty."""
    diagnostics: list[Diagnostic] = []
    for diagnostic in getattr(error, "error_diagnostics", ()):
        _collect(diagnostic, diagnostics)
    return diagnostics or [Diagnostic("error", "loc(unknown)", None, str(error))]


def _collect(diagnostic: ir.Diagnostic | ir.DiagnosticInfo, into: list[Diagnostic]) -> bool:
    severity = str(diagnostic.severity).rsplit(".", 1)[-1].lower()
    match = _FILE_LINE.search(str(diagnostic.location))
    line = int(match.group(1)) if match else None
    into.append(Diagnostic(severity, str(diagnostic.location), line, diagnostic.message))
    for note in diagnostic.notes:
        _collect(note, into)
    return True
