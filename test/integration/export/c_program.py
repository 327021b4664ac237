"""Exported programs, built with a C compiler and run by runner.c, which knows no Python."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

HERE = Path(__file__).parent
WARNINGS = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror")


def find_compiler() -> list[str] | None:
    """$CC, the system's, or that of the package ziglang."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if found is None and importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return [found] if found else None


COMPILER = find_compiler()
needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="there is no C compiler (CC, cc, gcc, clang or the package ziglang)"
)


class TwoRegions(nn.Module):
    """Two convolutions with something between that is not for the NPU."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 4, 3, stride=2)

    def forward(self, x):
        return self.b(torch.sin(self.a(x))).relu()


def compile_c(*arguments: object) -> None:
    subprocess.run([*COMPILER, *map(str, arguments)], check=True)


def read_plan(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def build(path: Path, *flags: str) -> tuple[Path, Path]:
    """The runner, and a library of the program whose plan this is."""
    program, plan = path.parent, read_plan(path)
    objects = [program / part["object"] for part in plan["parts"]]
    runtime = program / plan["files"]["runtime_source"]
    runner, library = program / "runner", program / "program.so"
    # every symbol is found, and no code has to be changed when it is loaded
    link = ("-shared", "-fPIC", "-Wl,-z,defs", "-Wl,-z,text", "-o", library, "-lm", "-pthread")
    compile_c("-O2", *flags, *objects, runtime, *link)
    sources = (HERE / "runner.c", HERE / "json.c", runtime)
    link = ("-I", program, "-o", runner, "-ldl", "-pthread")
    compile_c(*WARNINGS, "-O1", *sources, *link)
    return runner, library


def run(
    path: Path, given: Mapping[str, torch.Tensor], *, threads: int = 1, flags: tuple[str, ...] = ()
) -> dict[str, torch.Tensor]:
    """Outputs, gradients and buffers, by the names of values, of a program called with these
    values."""
    runner, library = build(path, *flags)
    data = path.parent / "data"
    data.mkdir(exist_ok=True)
    for name, tensor in given.items():
        (data / f"{name}.bin").write_bytes(_bytes(tensor))
    command = [runner, path.parent, library, data, str(threads)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plan = read_plan(path)
    values = {value["name"]: value for value in plan["values"]}
    names = [entry["value"] for entry in (*plan["outputs"], *plan["gradients"])]
    names += [name for name, value in values.items() if value["source"]["kind"] == "buffer"]
    wanted = [name for name in names if isinstance(name, str)]
    return {
        name: _tensor(values[name], (data / f"{name}.bin").read_bytes())
        for name in wanted
        if (data / f"{name}.bin").exists()
    }


def results(path: Path, found: Mapping[str, torch.Tensor]) -> list[Any]:
    """Leaves of the model's result."""
    return [
        found[entry["value"]] if isinstance(entry["value"], str) else entry["value"]
        for entry in read_plan(path)["outputs"]
    ]


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _tensor(value: dict[str, Any], contents: bytes) -> torch.Tensor:
    dtype = getattr(torch, value["dtype"])
    if not contents:
        return torch.empty(value["shape"], dtype=dtype)
    return torch.frombuffer(bytearray(contents), dtype=dtype).reshape(value["shape"])
