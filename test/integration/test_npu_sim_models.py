"""npu-sim on PyTorch models: captured without compiling, simulated, checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from mlir_npu.scripts import npu_sim
from mlir_npu.scripts.networks.capture import capture_model

VGG = ["mlir_npu.scripts.networks.small:vgg", "--input", "1x3x32x32"]


@pytest.mark.parametrize("target", ["edge", "small"])
def test_a_function_that_returns_a_module(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "vgg.json"
    assert npu_sim.main([*VGG, "--target", target, "--check", "--json", str(out)]) == 0
    assert "kernels give exactly the results" in capsys.readouterr().out
    figures = json.loads(out.read_text())
    pixels = 32 * 32 * 9 * (3 * 16 + 16 * 32 // 4 + 32 * 64 // 16)
    assert figures["macs"] == pixels + 1024 * 96 + 96 * 10
    assert 0 < figures["roofline_share"] <= 1


def test_the_model_runs_in_eager_while_it_is_captured() -> None:
    model, images = nn.Conv2d(3, 16, 3).eval(), torch.randn(1, 3, 32, 32)
    captured = capture_model(model, [images], "edge")
    assert [region.name for region in captured.regions] == ["npu_0"]
    assert captured.host_nodes == 0
    compiled = torch.compile(model, backend="mlir_npu")
    with torch.no_grad():  # the next compilation is a real one again
        torch.testing.assert_close(compiled(images), model(images))


def test_a_model_without_npu_regions_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert npu_sim.main(["torch.nn:Softmax", "--input", "1x8"]) == 2
    assert "no part of 'torch.nn:Softmax' runs on the NPU" in capsys.readouterr().err


def test_parts_on_the_host_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    waves = ["test_npu_sim_models:waves", "--input", "1x8x16x16"]
    assert npu_sim.main(waves) == 0
    printed = capsys.readouterr().out
    assert "not simulated: 1 node of the model on the host" in printed
    assert "1.conv2d" in printed  # kernels carry the number of their region


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


def waves() -> nn.Module:
    """Two regions around a call that stays on the host."""
    first, second = (nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))
    return nn.Sequential(first, Sine(), second)


def broken() -> nn.Module:
    raise RuntimeError("no weights\nat all")


FAILURES = {
    "torch.nn:Softmax --input 1x8 --input 1x8": "failed on inputs of 1x8, 1x8: TypeError: ",
    f"{VGG[0]} --input 1x4x32x32": "failed on inputs of 1x4x32x32: RuntimeError: ",
    f"{VGG[0]} --input 1x3x1x1": "failed on inputs of 1x3x1x1: RuntimeError: ",
    "json:dumps --input 1": "failed to make a model: TypeError: ",
    "os:getcwd --input 1": "must return a torch.nn.Module, got str",
    f"{__name__}:broken --input 1": "failed to make a model: RuntimeError: no weights\n",
    "no.such.package:f --input 1": "'no.such.package:f': ModuleNotFoundError: ",
    "json:nothing --input 1": "'json:nothing': AttributeError: ",
}


@pytest.mark.parametrize("arguments", FAILURES)
def test_models_that_fail(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert npu_sim.main(arguments.split()) == 2
    printed = capsys.readouterr().err
    assert FAILURES[arguments] in printed
    assert len(printed.splitlines()) == 1
