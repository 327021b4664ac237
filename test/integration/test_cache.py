"""What one process compiled is run by the next."""

import logging
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn

from mlir_npu.lowering import compile_region, region_code
from mlir_npu.runtime import compile_jobs, compile_pool
from mlir_npu.runtime.compile_pool import WorkerCrash, run_here
from mlir_npu.runtime.object_cache import VARIABLE

PROGRAM = textwrap.dedent("""
    import hashlib, sys, torch
    from torch import nn
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [layer for _ in range({layers}) for layer in (nn.Conv2d(8, 8, 3), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Conv2d(8, 8, 1), nn.Softmax(1)).eval()
    x = torch.randn(1, 8, 40, 40)
    with torch.no_grad():
        y = torch.compile(model, backend="mlir_npu", options={options})(x)
        torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-4)
    print(hashlib.sha256(y.numpy().tobytes()).hexdigest(), "torch_mlir" in sys.modules)
    """)


def run(folder, layers=1, **options) -> tuple[str, bool, str]:
    """The result's hash, whether MLIR was loaded, what was said."""
    program = PROGRAM.format(layers=layers, options=options)
    environment = os.environ | {VARIABLE: str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    result, mlir = done.stdout.split()
    return result, mlir == "True", done.stderr


@pytest.fixture(scope="module")
def compiled_here(tmp_path_factory):
    """A folder with a small network, and the network's result."""
    folder = tmp_path_factory.mktemp("cache")
    result, compiled, _ = run(folder)
    assert compiled
    return folder, result


def test_second_process_loads_no_compiler_and_computes_the_same(compiled_here):
    folder, result = compiled_here
    assert run(folder) == (result, False, "")


def test_large_region_is_compiled_apart_and_kept(tmp_path):
    """Bit for bit what it is if it is compiled as a whole, which a dump asks for. Apart, MLIR is in
    other processes only."""
    first, mlir, _ = run(tmp_path, 13)
    kept = set(tmp_path.glob("*/*.bin"))
    second, mlir_again, _ = run(tmp_path, 13)
    assert kept and set(tmp_path.glob("*/*.bin")) == kept
    whole, mlir_for_dump, _ = run(tmp_path, 13, dump_dir=str(tmp_path / "dump"))
    assert (mlir, mlir_again, mlir_for_dump) == (False, False, True)
    assert first == second == whole


def test_damaged_entries_are_made_again(compiled_here, tmp_path):
    folder, result = compiled_here
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    entries = list(tmp_path.glob("*/*.bin"))
    assert entries
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-7])
    again, compiled, said = run(tmp_path)
    assert compiled and again == result
    assert "is damaged and is made again" in said
    before = {entry: (folder / entry.relative_to(tmp_path)).read_bytes() for entry in entries}
    assert all(entry.read_bytes() == contents for entry, contents in before.items())


def test_cache_can_be_switched_off(compiled_here, tmp_path):
    folder, result = compiled_here
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    entries = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")}
    again, compiled, _ = run(tmp_path, cache=False)
    assert compiled and again == result
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*")}
    touched = [path for path in after if after[path] != entries.get(path)]
    assert len(touched) == 1  # what belongs to no region: a function of the runtime itself


def test_cache_that_cannot_be_written_costs_nothing_else(tmp_path):
    (tmp_path / "file").write_text("")
    _, compiled, said = run(tmp_path / "file")
    assert compiled
    assert said.count("so nothing is kept") == 1


def small_model():
    return nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU()).eval(), torch.randn(1, 4, 20, 20)


def scratch_sizes(monkeypatch) -> list[int]:
    """Of the regions that are compiled from now on."""
    sizes = []
    original = region_code.compile_module

    def noting(*arguments, **keywords):
        compiled = original(*arguments, **keywords)
        sizes.append(compiled.signature.scratch_bytes)
        return compiled

    monkeypatch.setattr(compile_region, "compile_module", noting)
    return sizes


def count_jobs(monkeypatch) -> list[str]:
    """The steps that run from now on, in whatever process."""
    steps = []
    original = region_code._Steps.after

    def counting(self, job, outcome):
        steps.append(job[0])
        return original(self, job, outcome)

    monkeypatch.setattr(region_code._Steps, "after", counting)
    return steps


@torch.no_grad()
def test_equal_kernels_are_compiled_once_across_networks(tmp_path, monkeypatch):
    """Whatever on-chip memory the other kernels of a network need."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(region_code, "is_current", lambda: True)
    steps, scratch = count_jobs(monkeypatch), scratch_sizes(monkeypatch)
    model, x = small_model()
    torch.compile(model, backend="mlir_npu")(x)
    own = steps.count("encode") - steps.count("plan")  # but for what calls them
    assert steps[0] == "normalise" and own > 0
    steps.clear()
    torch._dynamo.reset()
    torch.compile(model, backend="mlir_npu")(x)
    assert steps == []
    torch._dynamo.reset()
    other = nn.Conv2d(4, 64, 5, bias=False)

    def both(x):
        return model(x), other(x)

    actual = torch.compile(both, backend="mlir_npu")(x)
    torch.testing.assert_close(actual, both(x), rtol=1e-4, atol=1e-4)
    assert scratch[0] < scratch[1]
    with_those_kept = steps.count("encode")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "other"))
    steps.clear()
    torch._dynamo.reset()
    torch.compile(both, backend="mlir_npu")(x)
    assert steps.count("encode") - with_those_kept == own


CRASHES = {
    "import_graph": (r"graph is in (\S+region\.py)", "aten.convolution"),
    "normalise": (r"npu-opt (\S+crash\.mlir)", "linalg.conv"),
    "plan": (r"npu-opt (\S+crash\.mlir)", "call @"),
}


@pytest.mark.parametrize("step", CRASHES)
@torch.no_grad()
def test_crash_of_a_compiling_process_is_an_error_of_the_region(
    step, tmp_path, monkeypatch, caplog
):
    """In place of a fault in native code."""

    def crash(*_):
        raise WorkerCrash(-11, "in native code")

    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(compile_region, "LARGE", 0)
    monkeypatch.setattr(compile_region, "run_apart", run_here)
    monkeypatch.setattr(compile_jobs.Session, step, crash)
    monkeypatch.setattr("mlir_npu.logs._told", set())
    model, x = small_model()
    with pytest.raises(Exception, match="died of SIGSEGV") as caught:
        torch.compile(model, backend="mlir_npu", options={"strict": True})(x)
    named, contents = CRASHES[step]
    path = Path(re.search(named, str(caught.value))[1])
    assert contents in path.read_text()
    assert path.with_name("crash.txt").read_text().strip() == "in native code"
    torch._dynamo.reset()
    with caplog.at_level(logging.WARNING):
        actual = torch.compile(model, backend="mlir_npu")(x)
    torch.testing.assert_close(actual, model(x))
    assert "runs on the host" in caplog.text


@torch.no_grad()
def test_worker_killed_while_it_compiles_costs_the_region_only(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(compile_region, "LARGE", 0)
    give = compile_pool._Worker.give

    def give_and_kill(worker, number, job):
        given = give(worker, number, job)
        if job[0] == "encode":
            worker._process.kill()
        return given

    model, x = small_model()
    with monkeypatch.context() as patch:
        patch.setattr(compile_pool._Worker, "give", give_and_kill)
        actual = torch.compile(model, backend="mlir_npu")(x)
        torch.testing.assert_close(actual, model(x))
    torch._dynamo.reset()
    actual = torch.compile(model, backend="mlir_npu", options={"strict": True})(x)
    torch.testing.assert_close(actual, model(x), rtol=1e-4, atol=1e-4)
