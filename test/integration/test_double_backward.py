"""Gradients of gradients: PyTorch does not make them through a compiled backward, and says so."""

import pytest
import torch
from parity import compile_model
from torch import nn

MESSAGE = "torch.compile with aot_autograd does not currently support double backward"


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2))


def penalty(model, x: torch.Tensor) -> torch.Tensor:
    (gradient,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
    return gradient.square().sum()


def upstream(model, x: torch.Tensor) -> str:
    """What PyTorch says with its own backend that does not compile."""
    with pytest.raises(RuntimeError) as error:
        penalty(torch.compile(model, backend="aot_eager"), x).backward()
    return str(error.value)


def test_the_message_is_that_of_pytorch():
    model, x = network(), torch.randn(2, 3, 8, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match=MESSAGE) as error:
        penalty(compile_model(model), x).backward()
    torch._dynamo.reset()
    assert str(error.value) == upstream(model, x)


def test_first_gradients_with_create_graph_are_right():
    model, x = network(), torch.randn(2, 3, 8, 8, requires_grad=True)
    torch.testing.assert_close(
        penalty(compile_model(model), x).detach(), penalty(model, x).detach(), rtol=1e-4, atol=1e-5
    )


def test_gradients_taken_inside_of_the_compiled_function():
    """Dynamo leaves the call of autograd to Python, so this is no different."""
    model, x = network(), torch.randn(2, 3, 8, 8, requires_grad=True)
    compiled = torch.compile(lambda x: penalty(model, x), backend="mlir_npu")
    with pytest.raises(RuntimeError, match=MESSAGE):
        compiled(x).backward()
