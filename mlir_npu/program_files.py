"""Programs on disk: `program.save(folder)` and `mlir_npu.load(folder)`.

    program.py   the source: forward and backward, unit by unit
    parts/*.py   host parts, as calls of ATen
    program.bin  machine code, and what a call looks like; a pickle: load none that you do not trust
    weights.pt   parameters, buffers and constants, as torch.load reads them

Loading compiles nothing and needs neither the model's class nor MLIR.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch

from mlir_npu.dialect.host_cpu import cpu_flags
from mlir_npu.errors import CaptureError, MismatchError
from mlir_npu.lowering.fallback.host_code import texts, with_texts
from mlir_npu.program_state import OwnState
from mlir_npu.runtime.fingerprint import source
from mlir_npu.runtime.text_kernel import object_of_text, supply
from mlir_npu.stitched import Stitched, StitchedProgram
from mlir_npu.version import __version__

_MADE_BY = f"mlir_npu {__version__}, torch {torch.__version__}"


@dataclasses.dataclass(frozen=True)
class _Stored:
    """What program.bin holds. helpers: machine code by its text in the LLVM dialect."""

    made_by: str
    cpu: frozenset[str]
    stitched: Stitched
    helpers: Mapping[str, bytes]


def save(folder: str | os.PathLike, program: StitchedProgram, *, weights: bool) -> None:
    """Files that are there already are written over. Raises CaptureError."""
    path, stitched = Path(folder), program._stitched
    if lost := [name for name, code in stitched.codes.items() if code is None]:
        raise CaptureError(f"{', '.join(lost)} cannot be written as calls of ATen")
    (path / "parts").mkdir(parents=True, exist_ok=True)
    (path / "program.py").write_text(program.source)
    host = {n: text for name, code in stitched.codes.items() for n, text in texts(name, code)}
    for name, code in host.items():
        (path / "parts" / f"{name}.py").write_text(code.text)
    bare = {n: dataclasses.replace(code, text="", constants={}) for n, code in host.items()}
    codes = {name: with_texts(name, code, bare) for name, code in stitched.codes.items()}
    stored = _Stored(
        _MADE_BY,
        frozenset(cpu_flags()),
        dataclasses.replace(stitched, parts={}, constants={}, codes=codes, graphs={}, options=None),
        {source(): object_of_text(source())},
    )
    (path / "program.bin").write_bytes(pickle.dumps(stored, protocol=pickle.HIGHEST_PROTOCOL))
    tensors = {
        "weights": dict(program.weights) if weights else {},
        "constants": dict(stitched.constants),
        "host": {name: dict(code.constants) for name, code in host.items()},
    }
    torch.save(tensors, path / "weights.pt")


def load(
    folder: str | os.PathLike, weights: Mapping[str, torch.Tensor] | None = None
) -> StitchedProgram:
    """A program that was saved, with machine code for the same kind of CPU.

    weights: tensors to use in the place of those stored, by name, as in `dict(
    model.named_parameters())`; the program takes these very tensors. program.bin is a pickle: load
    none that you do not trust. Raises MismatchError.
    """
    path = Path(folder)
    with warnings.catch_warnings():  # pytree, of how its own specifications are stored
        warnings.simplefilter("ignore", FutureWarning)
        stored: _Stored = pickle.loads((path / "program.bin").read_bytes())
    _check(stored)
    supply(stored.helpers)
    tensors = torch.load(path / "weights.pt", weights_only=True)
    codes = dict(stored.stitched.codes)
    host = {
        n: dataclasses.replace(
            text,
            text=(path / "parts" / f"{n}.py").read_text(),
            constants=tensors["host"][n],
        )
        for name, code in codes.items()
        for n, text in texts(name, code)
    }
    codes = {name: with_texts(name, code, host) for name, code in codes.items()}
    stitched = dataclasses.replace(
        stored.stitched,
        parts={name: code.load(name) for name, code in codes.items()},
        constants=tensors["constants"],
        codes=codes,
    )
    return StitchedProgram(stitched, _state(stitched, tensors["weights"], weights or {}))


def _check(stored: _Stored) -> None:
    if stored.made_by != _MADE_BY:
        raise MismatchError(
            f"the program was saved by {stored.made_by}, and this is {_MADE_BY}: capture the model "
            "again"
        )
    if missing := stored.cpu - cpu_flags():
        raise MismatchError(
            f"the program was saved on a CPU with {', '.join(sorted(missing)[:5])}, which this one "
            "does not have: capture the model again"
        )


def _state(
    stitched: Stitched, stored: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]
) -> OwnState:
    plan = stitched.plan
    values = [plan.values[name] for name in plan.parameters]
    names = {value.source for value in values}
    if unknown := sorted(given.keys() - names):
        raise MismatchError(f"the program has no weights called {', '.join(unknown)}")
    if missing := sorted(names - stored.keys() - given.keys()):
        raise MismatchError(
            f"the program was saved without {', '.join(missing)}: pass them as `weights`"
        )
    tensors = []
    for value in values:
        tensor = given.get(value.source)
        if tensor is None:
            tensor = stored[value.source].detach()
            if value.kind == "parameter":
                tensor = torch.nn.Parameter(tensor, requires_grad=value.requires_grad)
        tensors.append(tensor)
    state = OwnState(tuple(values), tuple(tensors))
    state.current()  # says what does not fit
    return state
