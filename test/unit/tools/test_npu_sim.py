"""The command npu-sim on files: what it prints, what it writes, how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mlir_npu.scripts import npu_sim
from mlir_npu.simulator import picture

ADD = """
func.func private @add_0(%x: tensor<64x256xf32>, %y: tensor<64x256xf32>) -> tensor<64x256xf32>
    attributes {npu.kernel = "eltwise"} {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %y : tensor<64x256xf32>, tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x256xf32>
  return %r : tensor<64x256xf32>
}
func.func @main(%x: tensor<64x256xf32>, %y: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %0 = call @add_0(%x, %y)
    : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %1 = call @add_0(%0, %y)
    : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  return %1 : tensor<64x256xf32>
}
"""


@pytest.fixture
def add(tmp_path: Path) -> Path:
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return path


def test_table_names_kernels_and_sums_them_up(add, capsys):
    assert npu_sim.main([str(add)]) == 0
    printed = capsys.readouterr().out
    assert "add.mlir on edge" in printed
    assert "│ add_0  │     2 │ 64x256 to 64x256 │" in printed
    assert "all kernels: " in printed


def test_figures_as_json(add, tmp_path):
    assert npu_sim.main([str(add), "--json", str(tmp_path / "out.json")]) == 0
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures["calls"] == ["add_0", "add_0"]
    (kernel,) = figures["kernels"].values()
    assert figures["cycles"] == 2 * kernel["cycles"]
    assert kernel["bytes"]["dram_read"] == 2 * 64 * 256 * 4
    assert kernel["bounded_by"] == "dma in"
    assert kernel["bound_cycles"] == 2 * 64 * 256 * 4 / 32
    lost = sum(kernel["lost_cycles"].values())
    assert lost == pytest.approx(kernel["cycles"] - kernel["bound_cycles"])


def test_one_kernel_only(add, tmp_path, capsys):
    assert npu_sim.main([str(add), "--kernel", "add_0", "--json", str(tmp_path / "o.json")]) == 0
    assert json.loads((tmp_path / "o.json").read_text())["calls"] == ["add_0"]
    assert npu_sim.main([str(add), "--kernel", "sub"]) == 2
    assert "there is no kernel 'sub'; there are add_0" in capsys.readouterr().err


def test_schedules_differ_and_check_compares(add, tmp_path, capsys):
    cycles = {}
    for schedule in ("pipelined", "serial", "untiled"):
        out = tmp_path / f"{schedule}.json"
        assert npu_sim.main([str(add), "--schedule", schedule, "--json", str(out), "--check"]) == 0
        cycles[schedule] = json.loads(out.read_text())["cycles"]
        assert "1 of 1 kernels give exactly the results" in capsys.readouterr().out
    assert cycles["pipelined"] < cycles["serial"]


def test_trace_and_pictures_are_written(add, tmp_path):
    files = [tmp_path / name for name in ("t.json", "all.png", "one.svg")]
    assert npu_sim.main([str(add), "--trace", str(files[0]), "--picture", str(files[1])]) == 0
    assert npu_sim.main([str(add), "--kernel", "add_0", "--picture", str(files[2])]) == 0
    assert json.loads(files[0].read_text())["traceEvents"]
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in files[2].read_text()


def test_pictures_without_matplotlib_say_what_to_install(add, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert npu_sim.main([str(add), "--picture", str(tmp_path / "p.png")]) == 2
    assert "pip install 'mlir-npu[picture]'" in capsys.readouterr().err
    with pytest.raises(picture.MissingMatplotlib):
        picture.matplotlib_figures()


def test_a_wrong_result_fails_the_check(add, capsys, monkeypatch):
    from mlir_npu.simulator import compute

    calls = []

    def faulty(op):
        calls.append(op)
        right = compute.region_function(op)
        if len(calls) > 1:  # the untiled form comes second
            return right

        def wrong(arrays):
            right(arrays)
            arrays[-1][..., 0] += 1

        return wrong

    monkeypatch.setattr("mlir_npu.simulator.functional.compute_function", faulty)
    assert npu_sim.main([str(add), "--check"]) == 1
    printed = capsys.readouterr().out
    assert "results differ from the untiled kernel, by up to 1" in printed
    assert "0 of 1 kernels give exactly" in printed


ERRORS = {
    "target with caches": (["--target", "host"], "target 'host' has caches"),
    "unknown target": (["--target", "egde"], "did you mean 'edge'?"),
    "target without a name": (["--target", ""], "no target is called ''"),
    "picture of another format": (["--picture", "x.gif"], "must end with .svg or .png"),
    "shape of a file": (["--input", "1x3"], "--input is for models"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_to_do(name, add, capsys):
    arguments, message = ERRORS[name]
    assert npu_sim.main([str(add), *arguments]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("npu-sim: error: ")
    assert message in printed


TILES = """
func.func @k(%x: memref<64xf32> {npu.role = "input"}, %y: memref<64xf32> {npu.role = "output"},
             %m: memref<256xi8> {npu.role = "scratch"}) attributes {npu.kernel = "copy"} {
  %c = memref.memory_space_cast %m : memref<256xi8> to memref<256xi8, #npu.space<"sram">>
  %o = arith.constant 0 : index
  %a = memref.view %c[%o][] : memref<256xi8, #npu.space<"sram">>
    to memref<64xf32, #npu.space<"sram">>
  LOAD
  %s = "npu.dma_start"(%a, %y) {permutation = array<i64: 0>}
    : (memref<64xf32, #npu.space<"sram">>, memref<64xf32>) -> !npu.token
  "npu.dma_wait"(%s) : (!npu.token) -> ()
  return
}
"""
LOAD = """%t = "npu.dma_start"(%x, %a) {permutation = array<i64: 0>}
    : (memref<64xf32>, memref<64xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()"""


def test_tile_programs_are_checked_with_late_moves(tmp_path, capsys):
    path = tmp_path / "tiles.mlir"
    path.write_text(TILES.replace("LOAD", LOAD))
    assert npu_sim.main([str(path), "--check"]) == 0
    printed = capsys.readouterr().out
    assert "1 of 1 kernels give the same results with late moves and memories of NaN as" in printed
    path.write_text(TILES.replace("LOAD", ""))
    assert npu_sim.main([str(path), "--check"]) == 2  # the machine reports it, too
    printed = capsys.readouterr()
    assert "k: of 64 results 0 are never written, 64 are NaN, 64 differ from" in printed.out
    assert f"error: {path}:9:8: 'npu.dma_start': reads sram buffer" in printed.err


NOTHING = {
    "empty": ("", "there is no kernel: a function of attribute 'npu.kernel' with a body, or"),
    "declared": ("func.func private @main(%x: tensor<4xf32>)", "there is no kernel: "),
    "not called": (
        'func.func @k(%m: memref<64xi8> {npu.role = "scratch"}) attributes {npu.kernel = "x"} {\n'
        "return\n}\nfunc.func @main() {\nreturn\n}",
        "@main calls none of the 1 kernels",
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_to_simulate(name, tmp_path, capsys):
    text, message = NOTHING[name]
    path = tmp_path / "nothing.mlir"
    path.write_text(text)
    for arguments in ([], ["--check"]):
        assert npu_sim.main([str(path), *arguments]) == 2
        assert f"npu-sim: error: {path}: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--trace", "--picture"])
@pytest.mark.parametrize(
    "name, message",
    [("", "'' is no name of a file"), (".", "is no name of a file"), ("no/x.svg", "no directory")],
)
def test_where_nothing_can_be_written(option, name, message, add, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(npu_sim, "simulate_module", None)  # it fails before anything takes long
    assert npu_sim.main([str(add), option, name]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"npu-sim: error: {option}: ")
    assert message in printed


def test_files_that_cannot_be_read(tmp_path, capsys):
    for path, message in {
        tmp_path / "none.mlir": "there is no such file",
        tmp_path / "folder.mlir": "is no file",
        tmp_path / "bytes.mlir": "is not text in UTF-8",
    }.items():
        (tmp_path / "folder.mlir").mkdir(exist_ok=True)
        (tmp_path / "bytes.mlir").write_bytes(b"\xd8\x00")
        assert npu_sim.main([str(path)]) == 2
        assert f"npu-sim: error: {path}: {message}" in capsys.readouterr().err


def test_what_nobody_has_foreseen_is_an_error_of_the_module(add, capsys, monkeypatch):
    def fail(module):
        raise KeyError("surprise")

    monkeypatch.setattr(npu_sim, "simulate_module", fail)
    assert npu_sim.main([str(add)]) == 2
    assert f"{add}:" in (printed := capsys.readouterr().err)
    assert "'builtin.module': cannot be simulated: KeyError: 'surprise'" in printed


def test_a_model_that_does_not_exist(capsys):
    pytest.importorskip("torch")
    assert npu_sim.main(["resnet-51"]) == 2
    assert "'resnet-51' is no file, no network (resnet-18" in capsys.readouterr().err
    assert npu_sim.main(["json:loads"]) == 2
    assert "needs the shape of its inputs" in capsys.readouterr().err


def test_files_are_simulated_without_torch(add):
    code = (
        "import sys\nfrom mlir_npu.scripts import npu_sim\n"
        f"assert npu_sim.main([{str(add)!r}, '--check']) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
