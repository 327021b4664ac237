"""Training steps: forward, loss and backward of a batch, with loss and gradients checked."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from torch import nn

from mlir_npu.benchmarks import models
from mlir_npu.benchmarks.cases import Case, Effort
from mlir_npu.benchmarks.contest import hold_contest
from mlir_npu.benchmarks.engines import OURS_COMPILED
from mlir_npu.benchmarks.engines.pytorch import uses_winograd

BACKENDS = {OURS_COMPILED: "mlir_npu", "eager": None, "inductor": "inductor"}
CLASSES = 1000
# Of the norm of all gradients. A unit near the bend of its ReLU falls to either side of it by
# rounding, and moves gradients by more than rounding does.
TOLERANCE = 0.05


class Step:
    """A call makes the gradients of a model's parameters anew and returns the loss."""

    def __init__(
        self, model: nn.Module, x: torch.Tensor, backend: str | None, options: dict | None = None
    ) -> None:
        self.model, self.x = copy.deepcopy(model).train(), x
        self.forward = self.model
        if backend:
            self.forward = torch.compile(self.model, backend=backend, options=options)
        numbers = torch.Generator().manual_seed(8)
        self.labels = torch.randint(0, CLASSES, (len(x),), generator=numbers)

    def __call__(self) -> torch.Tensor:
        with torch.enable_grad():
            self.model.zero_grad()
            loss = nn.functional.cross_entropy(self.forward(self.x), self.labels)
            loss.backward()
        return loss.detach()

    def gradients(self) -> torch.Tensor:
        return torch.cat([p.grad.flatten() for p in self.model.parameters()])


def training_case(case: Case, names: list[str], effort: Effort) -> dict:
    """Every engine's first step beside that of eager in float64, then steps timed by turns."""
    torch.manual_seed(0)
    model, x = models.NETWORKS[case.network](), models.random_input(case.shape)
    macs = 3 * models.count_macs(model, x)
    exact = Step(model.double(), x.double(), None)
    loss, gradients = exact(), exact.gradients()
    model = model.float()

    def prepare(name: str) -> tuple[Step, dict]:
        with tempfile.TemporaryDirectory() as folder:
            options = {"dump_dir": folder} if name == OURS_COMPILED else None
            step = Step(model, x, BACKENDS[name], options)
            off = [(step() - loss).abs() / loss, (step.gradients() - gradients).norm()]
            notes = {"winograd": uses_winograd(Path(folder))}
        off[1] /= gradients.norm()
        return step, {"difference": max(map(float, off)), "tolerance": TOLERANCE, "notes": notes}

    counts = {"macs": macs, "least_macs": macs}
    return counts | hold_contest(case, names, effort, OURS_COMPILED, prepare)
