"""Exported programs for inference, run by a C program, against eager."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from c_program import (
    COMPILER,
    TwoRegions,
    build,
    compile_c,
    needs_compiler,
    read_plan,
    results,
    run,
)
from torch import nn
from torch.utils import _pytree as pytree

import mlir_npu

pytestmark = needs_compiler


def check(model, *inputs, folder: Path, threads: int = 1, flags=(), **options) -> Path:
    """Export, run in C, compare with eager. Returns the path of the plan."""
    program = mlir_npu.capture(model, *inputs, options=options)
    path = program.export(folder)
    plan = read_plan(path)
    leaves = pytree.tree_leaves(inputs)
    given = {
        entry["value"]: leaf
        for entry, leaf in zip(plan["inputs"], leaves, strict=True)
        if entry["value"] is not None
    }
    with torch.no_grad():
        expected = pytree.tree_leaves(model(*inputs))
    actual = results(path, run(path, given, threads=threads, flags=flags))
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    return path


def functions(call):
    """A module of a function."""
    return type("Model", (nn.Module,), {"forward": lambda self, *args: call(*args)})()


def test_two_regions_with_a_host_part_between(tmp_path: Path) -> None:
    path = check(TwoRegions().eval(), torch.randn(2, 3, 16, 16), folder=tmp_path)
    parts = read_plan(path)["parts"]
    assert [part["engine"] for part in parts] == ["npu", "llvm", "npu"]


@pytest.mark.parametrize("flags", [(), ("-DMLIR_NPU_SINGLE_THREAD",), ("-fopenmp",)])
def test_threads(tmp_path: Path, flags: tuple[str, ...]) -> None:
    if "-fopenmp" in flags and not _has_openmp(tmp_path):
        pytest.skip("the C compiler has no OpenMP")
    model = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 16, 3))
    path = check(model.eval(), torch.randn(1, 16, 32, 32), folder=tmp_path, threads=3, flags=flags)
    needs = {need for part in read_plan(path)["parts"] for need in part["needs"]}
    assert "mlir_npu_parallel" in needs


def test_a_fixed_number_of_threads(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 16, 3))
    image = torch.randn(1, 16, 32, 32)
    path = check(model.eval(), image, folder=tmp_path / "two", threads=1, num_threads=2)
    assert read_plan(path)["threads"] == 2
    path = check(model.eval(), image, folder=tmp_path / "one", threads=1, num_threads=1)
    assert not any(
        "mlir_npu" in need for part in read_plan(path)["parts"] for need in part["needs"]
    )


def _has_openmp(folder: Path) -> bool:
    source = folder / "openmp.c"
    source.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
    command = [*COMPILER, "-fopenmp", str(source), "-o", str(folder / "openmp")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_inputs_in_other_layouts(tmp_path: Path) -> None:
    image = torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last)
    check(TwoRegions().eval(), image, folder=tmp_path)


def test_inputs_with_gaps_are_packed_by_a_step(tmp_path: Path) -> None:
    image = torch.randn(1, 3, 16, 32)[..., ::2]
    path = check(TwoRegions().eval(), image, folder=tmp_path)
    (unit,) = read_plan(path)["units"]
    assert unit["steps"][0]["op"] == "copy"


def test_expanded_parameters_and_constants(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.register_buffer("shift", torch.randn(8, 1, 1).expand(8, 6, 6))
            self.table = torch.linspace(0, 1, 36).reshape(6, 6)

        def forward(self, x):
            return self.conv(x) * self.table + self.shift + torch.arange(6.0)

    check(Model().eval(), torch.randn(1, 3, 8, 8), folder=tmp_path)


def test_views_are_steps(tmp_path: Path) -> None:
    def call(x):
        y = torch.cos(x)
        return {"whole": y, "part": y[0, 1:], "turned": y.transpose(1, 2), "again": y}

    path = check(functions(call), torch.randn(2, 3, 4), folder=tmp_path)
    plan = read_plan(path)
    values = {value["name"]: value for value in plan["values"]}
    whole, part, turned, again = (values[entry["value"]] for entry in plan["outputs"])
    assert part["base"] == turned["base"] == whole["name"]
    assert part["byte_offset"] == 4 * 4
    assert turned["strides"] == [12, 1, 4]
    assert again["name"] == whole["name"]
    steps = [*plan["units"][0]["steps"], *plan["forward"]]
    assert [step["op"] for step in steps] == ["call", "run", "view", "view"]


def test_small_convolutions_of_host_parts_are_compiled(tmp_path: Path) -> None:
    """Too small to be a region of the NPU, and nothing that LLVM's host path takes."""
    small = nn.Sequential(nn.Conv2d(1, 1, 3), nn.Softsign(), nn.Linear(4, 2)).eval()
    check(small, torch.randn(1, 1, 6, 6), folder=tmp_path)


def test_types(tmp_path: Path) -> None:
    def call(x, i, b):
        return torch.sin(x), i * 3 - 1, ~b, torch.where(b, i, i * 2), x.double().cos() + 1

    inputs = torch.randn(40, 50), torch.arange(12).reshape(3, 4), torch.tensor([[True] * 4] * 3)
    check(functions(call), *inputs, folder=tmp_path)


def test_inputs_and_numbers_are_results(tmp_path: Path) -> None:
    class Model(nn.Module):
        def forward(self, x, scale):
            return x, torch.sin(x) * scale, scale

    path = check(Model(), torch.randn(3), 2.5, folder=tmp_path)
    plan = read_plan(path)
    assert plan["inputs"][1] == {"name": "scale", "value": None, "constant": "2.5"}
    assert plan["outputs"][2]["value"] == 2.5


def test_an_accelerators_tiles_run_too(tmp_path: Path) -> None:
    check(TwoRegions().eval(), torch.randn(1, 3, 16, 16), folder=tmp_path, target="small")


def test_weights_are_those_of_now(tmp_path: Path) -> None:
    model, image = TwoRegions().eval(), torch.randn(1, 3, 8, 8)
    program = mlir_npu.capture(model, image)
    with torch.no_grad():
        model.a.weight.mul_(2)
    model.b.bias = nn.Parameter(torch.ones(4))
    path = program.export(tmp_path)
    (actual,) = results(path, run(path, {"x": image}))
    torch.testing.assert_close(actual, model(image).detach(), rtol=1e-4, atol=1e-5)


def test_graph_breaks_and_numbers_that_python_decided_upon(tmp_path: Path) -> None:
    """A check refuses inputs for which the model would go another way."""

    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

        def forward(self, x):
            y = torch.sin(self.a(x))
            if x.sum().item() > 0:
                return self.b(y)
            return y

    model, image = Branch().eval(), torch.rand(1, 3, 9, 9)
    path = mlir_npu.capture(model, image).export(tmp_path)
    plan = read_plan(path)
    (taken,) = (step for step in plan["forward"] if step["op"] == "check")
    assert taken["location"].startswith(__file__)
    given = {plan["inputs"][0]["value"]: image}
    (actual,) = results(path, run(path, given))
    torch.testing.assert_close(actual, model(image).detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError, match="another value of"):
        run(path, {name: -tensor for name, tensor in given.items()})


def test_writes_to_inputs_and_buffers_and_views_of_inputs(tmp_path: Path) -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.norm = nn.BatchNorm2d(3)

        def forward(self, x, scale):
            self.count += 1
            x.mul_(scale)
            return self.norm(x) * self.count, x[0, 1:]

    model, image = Counter().train(), torch.randn(2, 3, 4, 5)
    theirs = copy.deepcopy(model)
    path = mlir_npu.capture(model, image.clone(), 2.0).export(tmp_path)
    plan = read_plan(path)
    assert plan["backward"] == []
    found = run(path, {plan["inputs"][0]["value"]: image})
    expected = theirs(image.clone(), 2.0)
    torch.testing.assert_close(results(path, found), list(expected), rtol=1e-4, atol=1e-5)
    for value in plan["values"]:
        if value["source"]["kind"] == "buffer":
            buffer = theirs.get_buffer(value["source"]["name"])
            torch.testing.assert_close(found[value["name"]], buffer, rtol=1e-4, atol=1e-5)


def test_results_without_elements(tmp_path: Path) -> None:
    def call(x):
        return torch.sin(x)[:0], x.sum()

    check(functions(call), torch.randn(3, 2), folder=tmp_path)


def test_header_is_c_and_lists_every_function(tmp_path: Path) -> None:
    """A program that needs no plan: it calls a part by its header."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()).eval()
    image = torch.randn(1, 1, 40, 40)
    path = mlir_npu.capture(model, image).export(tmp_path, name="edges")
    plan = read_plan(path)
    source = tmp_path / "main.c"
    source.write_text(
        '#include "edges.h"\n'
        "#define NAME(function) +1\n"
        "#define TABLE(function) {#function, function},\n"
        "typedef struct { const char *name; void (*call)(void *const *); } entry;\n"
        "static const entry table[] = {EDGES_ENTRIES(TABLE)};\n"
        "int main(void) {\n"
        "  return !(sizeof table / sizeof *table == 0 EDGES_ENTRIES(NAME) && table[0].call\n"
        "           && edges_forward_0_npu_0_slots == 7 && EDGES_WEIGHTS_BYTES > 0\n"
        "           && EDGES_THREADS > 0);\n"
        "}\n"
    )
    objects = [tmp_path / part["object"] for part in plan["parts"]]
    program = tmp_path / "main"
    runtime = tmp_path / "mlir_npu_runtime.c"
    flags = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", tmp_path)
    compile_c(*flags, source, runtime, *objects, "-o", program, "-lm")
    subprocess.run([str(program)], check=True)


def test_no_python_is_in_the_library(tmp_path: Path) -> None:
    path = mlir_npu.capture(TwoRegions().eval(), torch.randn(1, 3, 8, 8)).export(tmp_path)
    _, library = build(path)
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(library)!r})"]
    subprocess.run(command, check=True)
    assert b"Py_" not in library.read_bytes()
