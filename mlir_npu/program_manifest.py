"""program.json: what a saved program needs to run, and what its files must be.

It is read before anything else, so that a folder that holds something else, or is damaged, or was
made elsewhere, is refused with a reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import torch

from mlir_npu.dialect.host_cpu import cpu_flags
from mlir_npu.errors import MismatchError
from mlir_npu.version import __version__

NAME = "program.json"
FORMAT = "mlir-npu-program"
VERSION = 1
_MADE_BY = {"mlir_npu": __version__, "torch": torch.__version__}
_REMEDY = "capture the model again, and save it"
AGAIN = "copy the folder again, or save the program again"


def write_manifest(folder: Path, files: Iterable[str]) -> None:
    """files: those that must be there, unchanged; their names in the folder."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": _MADE_BY,
        "cpu": sorted(cpu_flags()),
        "files": {name: _digest(folder / name) for name in files},
    }
    (folder / NAME).write_text(json.dumps(manifest, indent=1) + "\n")


def check_manifest(folder: Path) -> None:
    """Raises FileNotFoundError, and MismatchError with what differs."""
    manifest = _read(folder)
    if manifest["version"] != VERSION:
        raise MismatchError(
            f"{folder} has version {manifest['version']} of the format of saved programs, and this "
            f"is mlir_npu {__version__}, which reads version {VERSION}: {_REMEDY}"
        )
    if manifest["made_by"] != _MADE_BY:
        raise MismatchError(
            f"the program in {folder} was saved by {_words(manifest['made_by'])}, and this is "
            f"{_words(_MADE_BY)}: {_REMEDY}"
        )
    if missing := sorted(set(manifest["cpu"]) - cpu_flags()):
        raise MismatchError(
            f"the program in {folder} was saved on a CPU with {', '.join(missing[:5])}, which this "
            f"one does not have: {_REMEDY}"
        )
    for name, digest in manifest["files"].items():
        if not (folder / name).is_file():
            raise MismatchError(f"{folder} is not complete, {name} is not there: {AGAIN}")
        if _digest(folder / name) != digest:
            raise MismatchError(f"{folder / name} is not as it was saved: {AGAIN}")


def _read(folder: Path) -> dict:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder} to load a program from")
    path = folder / NAME
    if not path.is_file():
        exported = (folder / "plan.json").is_file()
        raise MismatchError(
            f"{folder} holds no saved program, there is no {NAME} in it"
            + (" (it holds an exported one, which is for other languages)" if exported else "")
            + ": program.save(folder) writes one"
        )
    try:
        manifest = json.loads(path.read_text())
        if manifest["format"] == FORMAT and {"version", "made_by", "cpu", "files"} <= {*manifest}:
            return manifest
    except (ValueError, KeyError, TypeError):  # no JSON, or other JSON
        pass
    raise MismatchError(f"{path} does not describe a saved program of mlir_npu: {AGAIN}")


def _words(made_by: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in made_by.items())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
