"""Programs on disk: `program.save(folder)` and `mlir_npu.load(folder)`.

    program.json  what is needed to run the program, and what its files must be
    program.py    the source: forward and backward, unit by unit
    parts/*.py    host parts, as calls of ATen
    program.bin   machine code, graphs, and what a call looks like; a pickle
    weights.pt    parameters, buffers and constants, as torch.load reads them

All of it is code that `load` runs: load none that you do not trust. Loading compiles nothing and
needs neither the model's class nor MLIR.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mlir_npu.errors import CaptureError, HostLoweringError, MismatchError
from mlir_npu.lowering.fallback.host_code import texts, with_texts
from mlir_npu.lowering.graph_pickle import dumps
from mlir_npu.lowering.saved_graph import RestoredGraphs, SavedGraph
from mlir_npu.program_manifest import AGAIN, check_manifest, write_manifest
from mlir_npu.program_state import OwnState
from mlir_npu.runtime.fingerprint import source
from mlir_npu.runtime.text_kernel import object_of_text, supply
from mlir_npu.stitched import Stitched, StitchedProgram


@dataclasses.dataclass(frozen=True)
class _Stored:
    """What program.bin holds. graphs: of the units, if they can be kept; helpers: machine code by
    its text in the LLVM dialect."""

    stitched: Stitched
    graphs: Mapping[str, SavedGraph]
    helpers: Mapping[str, bytes]


def save(folder: str | os.PathLike, program: StitchedProgram, *, weights: bool) -> None:
    """Files that are there already are written over. Raises CaptureError."""
    path, stitched = Path(folder), program.stitched
    if lost := [name for name, code in stitched.codes.items() if code is None]:
        raise CaptureError(f"{', '.join(lost)} cannot be written as calls of ATen")
    (path / "parts").mkdir(parents=True, exist_ok=True)
    (path / "program.py").write_text(program.source)
    host = {n: text for name, code in stitched.codes.items() for n, text in texts(name, code)}
    for name, code in host.items():
        (path / "parts" / f"{name}.py").write_text(code.text)
    bare = {n: dataclasses.replace(code, text="", constants={}) for n, code in host.items()}
    codes = {name: with_texts(name, code, bare) for name, code in stitched.codes.items()}
    graphs = _graphs(stitched)
    stored = _Stored(
        dataclasses.replace(stitched, parts={}, constants={}, codes=codes, graphs={}),
        {name: graph.with_constants({}) for name, graph in graphs.items()},
        {source(): object_of_text(source())},
    )
    (path / "program.bin").write_bytes(dumps(stored))
    tensors = {
        "weights": dict(program.weights) if weights else {},
        "constants": dict(stitched.constants),
        "host": {name: dict(code.constants) for name, code in host.items()},
        "graphs": {name: graph.constants() for name, graph in graphs.items()},
    }
    torch.save(tensors, path / "weights.pt")
    write_manifest(path, ["program.bin", *(f"parts/{name}.py" for name in host)])


def load(
    folder: str | os.PathLike, weights: Mapping[str, torch.Tensor] | None = None
) -> StitchedProgram:
    """A program that was saved, with machine code for the same kind of CPU.

    weights: tensors to use in the place of those stored, by name, as in `dict(
    model.named_parameters())`; the program takes these very tensors. Loading runs code of the
    folder: load none that you do not trust. Raises FileNotFoundError, and MismatchError for what is
    no program, is damaged, or was saved by other versions or for other CPUs.
    """
    path = Path(folder)
    check_manifest(path)
    tensors = _tensors(path / "weights.pt")
    with warnings.catch_warnings():  # pytree, of how its own specifications are stored
        warnings.simplefilter("ignore", FutureWarning)
        stored: _Stored = pickle.loads((path / "program.bin").read_bytes())
    supply(stored.helpers)
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
    graphs = {
        name: graph.with_constants(tensors["graphs"][name]) for name, graph in stored.graphs.items()
    }
    stitched = dataclasses.replace(
        stored.stitched,
        parts={name: code.load(name) for name, code in codes.items()},
        constants=tensors["constants"],
        codes=codes,
        graphs=RestoredGraphs(graphs),
    )
    return StitchedProgram(stitched, _state(stitched, tensors["weights"], weights or {}))


def _graphs(stitched: Stitched) -> dict[str, SavedGraph]:
    """None of them if there is one that no file can hold."""
    if isinstance(stitched.graphs, RestoredGraphs):
        return dict(stitched.graphs.saved)
    try:
        return {name: SavedGraph.of(graph) for name, graph in stitched.graphs.items()}
    except HostLoweringError:
        return {}


def _tensors(path: Path) -> dict[str, Any]:
    """Raises MismatchError."""
    try:
        tensors = torch.load(path, weights_only=True)
    except Exception as error:  # whatever torch.load raises for a file that it does not know
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise MismatchError(f"{path} cannot be read ({reason}): {AGAIN}") from None
    keys = {"weights", "constants", "host", "graphs"}
    if not isinstance(tensors, dict) or not keys <= tensors.keys():
        raise MismatchError(
            f"{path} holds other tensors than those of the program: {AGAIN}; other weights are "
            "given as load(folder, weights)"
        )
    return tensors


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
