"""One case in a process of its own: reads a request from stdin, writes the outcome to a file.

A request has the case, the engines to run and the effort; an outcome is the part of a record that
`results.py` describes.
"""

from __future__ import annotations

import copy
import functools
import json
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from mlir_npu.benchmarks import chains, memory, models, training
from mlir_npu.benchmarks.cases import Case, Effort
from mlir_npu.benchmarks.contest import hold_contest
from mlir_npu.benchmarks.engines import ENGINES, OURS
from mlir_npu.benchmarks.engines.base import Engine
from mlir_npu.benchmarks.engines.exported import Exported, export
from mlir_npu.scripts.networks.comparison import compare

# Winograd's rounding errors are a few times those of a sum in any order, which `compare` allows.
ALLOWANCE = 8.0


def build(case: Case) -> nn.Module:
    if case.suite == "host":
        return chains.Chain(case.network, case.shape)
    return models.layer(case.layer) if case.layer else models.NETWORKS[case.network]()


def input_of(case: Case, model: nn.Module) -> torch.Tensor:
    if isinstance(model, chains.Chain):
        return chains.input_of(model, case.shape)
    return models.random_input(case.shape)


def checked(
    model: nn.Module, x: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor
) -> dict:
    """How far a result is from eager's, and how far it may be."""
    if isinstance(model, chains.Chain):
        return chains.accuracy(model, x, expected, actual)
    difference = compare(model, expected, actual.contiguous())
    return {
        "difference": difference.largest,
        "tolerance": ALLOWANCE * difference.tolerance,
        "notes": {},
    }


def make_engine(name: str, case: Case, folder: Path) -> Engine:
    own = folder / name
    own.mkdir()
    return ENGINES[name](case.threads, own, inspect=case.kind == "time")


def time_case(case: Case, names: list[str], effort: Effort, folder: Path) -> dict:
    """Every engine checked and then timed by turns."""
    model = build(case)
    x = input_of(case, model)
    expected, macs = model(x), models.count_macs(model, x)

    def prepare(name: str) -> tuple[Callable[[], torch.Tensor], dict]:
        engine = make_engine(name, case, folder)
        call = engine.prepare(copy.deepcopy(model), x)
        return call, checked(model, x, expected, call()) | {"notes": engine.notes()}

    counts = {"macs": macs, "least_macs": models.count_least_macs(model, x)}
    return counts | hold_contest(case, names, effort, OURS, prepare)


def compile_case(case: Case, name: str, folder: Path) -> dict:
    """Seconds from the eager model to the first result; caches on disk are empty."""
    model, x = build(case), models.random_input(case.shape)
    expected = model(x)
    engine = make_engine(name, case, folder)
    started = time.perf_counter()
    actual = engine.prepare(model, x)()
    seconds = time.perf_counter() - started
    outcome = {"values": [seconds], "notes": engine.notes()}
    return checked(model, x, expected, actual) | outcome


def memory_case(case: Case, name: str, folder: Path) -> dict:
    """MB over torch and the model's weights, from compiling to the last call.

    An engine that runs a file finds it ready, and the process is without the model.
    """
    model, x = build(case), models.random_input(case.shape)
    expected, weights = model(x), 0
    engine = make_engine(name, case, folder)
    load = functools.partial(engine.prepare, model, x)
    if isinstance(engine, Exported):
        weights = memory.weight_bytes(model)
        load = functools.partial(engine.load, export_apart(case, folder), x)
        tolerance_of, model = copy.deepcopy(model).to("meta"), None
    else:
        tolerance_of = model
    whole, run, actual = memory.measure(load, weights)
    outcome = {"values": [whole], "notes": engine.notes() | {"run": run}}
    return checked(tolerance_of, x, expected, actual) | outcome


def export_apart(case: Case, folder: Path) -> Path:
    """Exports in a process of its own, whose memory does not count."""
    path = folder / "model.onnx"
    process = multiprocessing.get_context("spawn").Process(target=_export, args=(case, path))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the export ended with code {process.exitcode}")
    return path


def _export(case: Case, path: Path) -> None:
    with torch.no_grad():
        export(build(case), models.random_input(case.shape), path)


def run(request: dict, folder: Path) -> dict:
    case, names = Case.from_json(request["case"]), request["engines"]
    torch.set_num_threads(case.threads)
    if case.suite == "training":
        return training.training_case(case, names, Effort(**request["effort"]))
    if case.kind == "time":
        return time_case(case, names, Effort(**request["effort"]), folder)
    (name,) = names
    single = compile_case if case.kind == "compile" else memory_case
    return {"engines": {name: single(case, name, folder)}}


def request_for(case: Case, names: list[str], effort: Effort) -> dict:
    return {"case": case.to_json(), "engines": names, "effort": asdict(effort)}


def main() -> None:
    warnings.filterwarnings("ignore")
    request = json.load(sys.stdin)
    with tempfile.TemporaryDirectory(prefix="mlir-npu-bench-") as folder:
        if request["case"]["kind"] != "time":  # times do not depend on what is in its cache
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/cache"
            os.environ["MLIR_NPU_CACHE_DIR"] = f"{folder}/cache-of-ours"
        with torch.no_grad():
            outcome = run(request, Path(folder))
    Path(sys.argv[1]).write_text(json.dumps(outcome))


if __name__ == "__main__":
    main()
