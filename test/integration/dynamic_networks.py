"""A network for tests of sizes that change, and how its captures and steps are counted."""

import torch
from parity import assert_gradients_close, assert_same
from torch import nn
from torch._guards import CompileContext

from mlir_npu.backend import mlir_npu as backend


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ).eval()


class Captures:
    """A backend that counts Dynamo's captures, each of which may call it several times."""

    def __init__(self, **options) -> None:
        self._options, self._compilations = options, set()

    def __call__(self, graph_module, example_inputs):
        compilation = CompileContext.current_compile_id()
        self._compilations.add((compilation.frame_id, compilation.frame_compile_id))
        return backend(graph_module, example_inputs, options=self._options)

    @property
    def count(self) -> int:
        return len(self._compilations)


def compare_steps(compiled, model: nn.Module, x: torch.Tensor) -> None:
    """Outputs and all gradients of one step, for a weighted sum of the outputs."""
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    got, expected = compiled(ours), model(theirs)
    assert_same(got.detach(), expected.detach())
    weights = torch.randn_like(expected)
    grads = torch.autograd.grad((got * weights).sum(), [ours, *model.parameters()])
    wanted = torch.autograd.grad((expected * weights).sum(), [theirs, *model.parameters()])
    assert_gradients_close(grads, wanted)
