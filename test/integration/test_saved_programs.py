"""program.save(folder) and mlir_npu.load(folder), in a process that knows nothing of the model."""

import os
import shutil
import subprocess
import sys

import pytest
import torch
from torch import nn

import mlir_npu
from mlir_npu.errors import MismatchError


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)
        self.table = torch.linspace(0, 1, 4)

    def forward(self, x, scale):
        y = self.norm(self.conv(x)).relu()
        torch._dynamo.graph_break()
        y = torch.special.bessel_j0(y) + y
        torch._dynamo.graph_break()
        return {"out": self.head(y.mean((2, 3))) * scale + self.table, "images": (y, y[0])}


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        y = self.conv(x).relu()
        return y.softmax(1), torch.special.bessel_j0(y).topk(2, 1)


def run_apart(text: str, tmp_path, *arguments: str) -> None:
    """In a process with an empty cache, which stays empty, and without MLIR."""
    script = tmp_path / "script.py"
    script.write_text(
        text
        + "\nimport sys\n"
        + "assert not any(name.startswith('torch_mlir') for name in sys.modules)\n"
    )
    cache = tmp_path / "cache"
    result = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", str(script), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "MLIR_NPU_CACHE_DIR": str(cache)},
    )
    assert result.returncode == 0, result.stderr
    assert not cache.exists() or not list(cache.rglob("*.bin"))


STEP = """
import sys, torch, mlir_npu
program = mlir_npu.load(sys.argv[1])
known = torch.load(sys.argv[2])
x = known["x"].requires_grad_()
results = program(x, 3)
torch.testing.assert_close([results["out"], *results["images"]], known["results"], rtol=0, atol=0)
assert results["images"][1].data_ptr() == results["images"][0].data_ptr()
torch.autograd.backward([results["out"], *results["images"]], known["tangents"])
torch.testing.assert_close(x.grad, known["x.grad"], rtol=0, atol=0)
for name, tensor in program.weights.items():
    if name in known["gradients"]:
        torch.testing.assert_close(tensor.grad, known["gradients"][name], rtol=0, atol=0)
    else:
        torch.testing.assert_close(tensor, known["buffers"][name], rtol=0, atol=0)
"""

SOURCE = """
import sys, torch, mlir_npu
from pathlib import Path
program = mlir_npu.load(sys.argv[1])
known = torch.load(sys.argv[2])
module = dict(program.parts)
exec(Path(sys.argv[1], "program.py").read_text(), module)
with torch.no_grad():
    results, saved = module["forward"]([known["x"]], program.parameters)
    gradients = module["backward"](saved, known["tangents"])
torch.testing.assert_close(list(results), known["results"], rtol=0, atol=0)
names = [program.plan.values[gradient.of].source for gradient in program.plan.gradients]
found = dict(zip(names, gradients, strict=True))
torch.testing.assert_close(found.pop("x"), known["x.grad"], rtol=0, atol=0)
torch.testing.assert_close(found, known["gradients"], rtol=0, atol=0)
"""


@pytest.mark.parametrize("script", [STEP, SOURCE], ids=["program", "source"])
def test_training_in_another_process(script, tmp_path):
    model = Network()
    x = torch.randn(2, 3, 12, 12, requires_grad=True)
    program = mlir_npu.capture(model, x, 3, train=True)
    program.save(tmp_path / "program")
    results = program(x, 3)
    results = [results["out"], *results["images"]]
    tangents = [torch.randn_like(result) for result in results]
    torch.autograd.backward(results, tangents)
    known = {
        "x": x.detach(),
        "results": [result.detach() for result in results],
        "tangents": tangents,
        "x.grad": x.grad,
        "gradients": {name: tensor.grad for name, tensor in model.named_parameters()},
        "buffers": dict(model.named_buffers()),
    }
    torch.save(known, tmp_path / "known.pt")
    run_apart(script, tmp_path, str(tmp_path / "program"), str(tmp_path / "known.pt"))


INFERENCE = """
import sys, torch, mlir_npu
program = mlir_npu.load(sys.argv[1])
known = torch.load(sys.argv[2])
probabilities, (values, indices) = program(known["x"])
torch.testing.assert_close([probabilities, values], known["results"], rtol=0, atol=0)
"""


def test_inference_in_another_process(tmp_path):
    program = mlir_npu.capture(Plain().eval(), x := torch.randn(1, 3, 12, 12))
    program.save(tmp_path / "program")
    probabilities, (values, _) = program(x)
    torch.save({"x": x, "results": [probabilities, values]}, tmp_path / "known.pt")
    run_apart(INFERENCE, tmp_path, str(tmp_path / "program"), str(tmp_path / "known.pt"))


def test_weights_that_are_passed(tmp_path):
    model = Network()
    x = torch.randn(2, 3, 12, 12)
    program = mlir_npu.capture(model, x, 3, train=True)
    program.save(tmp_path, weights=False)
    with pytest.raises(MismatchError, match="saved without conv.bias"):
        mlir_npu.load(tmp_path)
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    loaded = mlir_npu.load(tmp_path, weights)
    loaded(x, 3)["out"].sum().backward()
    assert model.conv.weight.grad.abs().sum() > 0
    with pytest.raises(MismatchError, match="no weights called typo"):
        mlir_npu.load(tmp_path, {**weights, "typo": x})
    with pytest.raises(MismatchError, match="conv.weight is float32"):
        mlir_npu.load(tmp_path, {**weights, "conv.weight": x})


def test_a_program_of_another_machine_is_refused(tmp_path, monkeypatch):
    program = mlir_npu.capture(Plain(), torch.randn(1, 3, 12, 12), train=True)
    program.save(tmp_path)
    monkeypatch.setattr("mlir_npu.program_manifest.cpu_flags", lambda: frozenset({"sse2"}))
    with pytest.raises(MismatchError, match="saved on a CPU with"):
        mlir_npu.load(tmp_path)


def _cut(path):
    path.write_bytes(path.read_bytes()[:-100])


DAMAGES = [
    (lambda p: (p / "program.json").unlink(), "holds no saved program, there is no program.json"),
    (lambda p: _cut(p / "program.json"), "program.json does not describe a saved program"),
    (lambda p: (p / "program.json").write_text("[]"), "program.json does not describe"),
    (lambda p: _cut(p / "program.bin"), "program.bin is not as it was saved: copy the folder"),
    (lambda p: (p / "program.bin").unlink(), "not complete, program.bin is not there"),
    (lambda p: next((p / "parts").iterdir()).write_text("x"), "parts/.* is not as it was saved"),
    (lambda p: _cut(p / "weights.pt"), "weights.pt cannot be read"),
    (lambda p: (p / "weights.pt").unlink(), "weights.pt cannot be read .*No such file"),
    (lambda p: torch.save({"conv.weight": 1}, p / "weights.pt"), "holds other tensors than"),
    (lambda p: _edit(p, '"version": 1', '"version": 7'), "has version 7 of the format"),
    (lambda p: _edit(p, '"torch": "', '"torch": "9'), "saved by mlir_npu .*, torch 9.*, and this"),
]


def _edit(path, old, new):
    file = path / "program.json"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved")
    mlir_npu.capture(Plain(), torch.randn(1, 3, 12, 12)).save(path)
    return path


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_what_is_damaged_or_from_elsewhere_is_refused_with_the_reason(
    saved, tmp_path, damage, message
):
    path = shutil.copytree(saved, tmp_path / "program")
    damage(path)
    with pytest.raises(MismatchError, match=message):
        mlir_npu.load(path)


def test_folders_that_hold_something_else(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*nothing"):
        mlir_npu.load(tmp_path / "nothing")
    mlir_npu.capture(nn.Conv2d(3, 8, 3), torch.randn(1, 3, 9, 9)).export(tmp_path / "exported")
    with pytest.raises(MismatchError, match="it holds an exported one"):
        mlir_npu.load(tmp_path / "exported")
