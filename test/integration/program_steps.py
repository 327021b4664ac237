"""Steps of captured training programs against eager."""

from __future__ import annotations

import copy

import torch
from parity import check_step
from torch import nn

import mlir_npu


def image(*shape: int, grad: bool = True) -> torch.Tensor:
    return torch.randn(shape or (2, 3, 16, 16)).requires_grad_(grad)


def check_program(model: nn.Module, *inputs: torch.Tensor, steps: int = 2):
    """The program's steps are eager's, on other inputs than those of the capture."""
    theirs = copy.deepcopy(model)
    program = mlir_npu.capture(model, *copy.deepcopy(inputs), train=True)
    for ours, other in zip(model.state_dict().values(), theirs.state_dict().values()):
        torch.testing.assert_close(ours, other, rtol=0, atol=0)  # capturing trains nothing
    for _ in range(steps):
        given = tuple(torch.randn_like(x).requires_grad_(x.requires_grad) for x in inputs)
        check_step(program, model, theirs, given, copy.deepcopy(given))
    return program


def line_of(file: str, text: str) -> int:
    with open(file) as lines:
        return next(number for number, line in enumerate(lines, 1) if line.strip() == text)
