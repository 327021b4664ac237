"""The files of npu-sim: MLIR that it reads, and what it writes."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import ATTRIBUTE_NAME, load_target, set_target
from mlir_npu.simulator.picture import SUFFIXES, matplotlib_figures

DEFAULT_TARGET = "edge"


class UsageError(ValueError):
    """The arguments do not go together."""


def parse(path: Path, target: str | None) -> ir.Module:
    """The module of a file; target: what it is for, whatever it says. Raises UsageError."""
    if not path.is_file():
        raise UsageError(f"{path}: {'is no file' if path.exists() else 'there is no such file'}")
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not text in UTF-8") from None
    with make_context(), ir.Location.unknown():
        try:
            module = ir.Module.parseFile(str(path))  # which gives ops the name of the file
        except ir.MLIRError as error:
            raise UsageError(f"{path}: {error}") from None
        given = ATTRIBUTE_NAME in module.operation.attributes
        if target is not None or not given:
            set_target(module.operation, load_target(DEFAULT_TARGET if target is None else target))
    return module


def check_outputs(parsed: argparse.Namespace) -> None:
    """Can what is asked for be written? Raises UsageError, MissingMatplotlib."""
    for option in ("json", "trace", "picture"):
        name = getattr(parsed, option)
        if name is None:
            continue
        path = Path(name)
        if not name or path.is_dir():
            raise UsageError(f"--{option}: '{name}' is no name of a file")
        if not path.parent.is_dir():
            raise UsageError(f"--{option}: there is no directory '{path.parent}'")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"--{option}: '{path}' may not be written")
    if parsed.picture is None:
        return
    if Path(parsed.picture).suffix.lower() not in SUFFIXES:
        raise UsageError(f"--picture: '{parsed.picture}' must end with {' or '.join(SUFFIXES)}")
    matplotlib_figures()
