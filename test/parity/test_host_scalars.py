"""Tensors without dimensions on the host: the NPU's rules say nothing of them."""

import pytest
import torch
from torch.nn import functional as F

ORDERS = [0, 0.5, 1, 2, 3.5, -1, float("inf"), float("-inf")]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(), (1,), (4, 3)], ids=str)
def test_norms_of_every_order(shape, order):
    def norm(x):
        return torch.linalg.vector_norm(x, ord=order)

    x = torch.rand(shape) * 9 + 1
    torch.testing.assert_close(torch.compile(norm, backend="mlir_npu")(x), norm(x))


@pytest.mark.parametrize(
    "function",
    [
        *(torch.sum, torch.mean, torch.amax, torch.var, torch.softmax, torch.log_softmax),
        *(torch.logsumexp, torch.cumsum, torch.argmax, torch.flip),
    ],
)
def test_reductions_of_no_dimension(function, caplog):
    takes_dim = function not in (torch.mean, torch.sum, torch.amax, torch.var, torch.argmax)
    arguments = (([] if function is torch.flip else 0),) if takes_dim else ()
    x = torch.tensor(2.5)
    compiled = torch.compile(function, backend="mlir_npu")(x, *arguments)
    torch.testing.assert_close(compiled, function(x, *arguments), equal_nan=True)
    assert "internal error" not in caplog.text


REDUCTIONS = {
    **{f.__name__: lambda x, f=f: f(x, 0) for f in (torch.sum, torch.mean, torch.amax, torch.amin)},
    **{f.__name__: lambda x, f=f: f(x, 0) for f in (torch.softmax, torch.log_softmax)},
    "logsumexp": lambda x: torch.logsumexp(x, 0),
    "var": lambda x: torch.var(x, 0, correction=0),
    "std": lambda x: torch.std(x, 0, correction=0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("options", [{}, {"min_region_macs": 0}], ids=["host", "npu"])
def test_gradients_of_reductions_of_a_dimension_that_is_not_there(name, options, caplog):
    def function(x):
        return REDUCTIONS[name](x * 2) * 3

    x = torch.tensor(2.5, requires_grad=True)
    result = torch.compile(function, backend="mlir_npu", options=options)(x)
    expected = function(x)
    torch.testing.assert_close(result, expected)
    (gradient,), (wanted,) = (torch.autograd.grad(y, x) for y in (result, expected))
    torch.testing.assert_close(gradient, wanted, equal_nan=True)
    assert "internal error" not in caplog.text
    assert "runs on the host (llvm): stage" not in caplog.text


LOSSES = (F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_one_number(loss, reduction, caplog):
    def function(x, target):
        return loss(x, target, reduction=reduction)

    x, target = torch.tensor(2.5, requires_grad=True), torch.tensor(0.5)
    compiled = torch.compile(function, backend="mlir_npu", options={"min_region_macs": 0})
    result, expected = compiled(x, target), function(x, target)
    torch.testing.assert_close(result, expected)
    (gradient,), (wanted,) = (torch.autograd.grad(y, x) for y in (result, expected))
    torch.testing.assert_close(gradient, wanted)
    assert "runs on the host" not in caplog.text


@pytest.mark.parametrize("shape", [(), (1,), (4, 3)], ids=str)
def test_elements_of_all_dimensions_roll_as_one(shape, caplog):
    def rolled(x):
        return x.roll(5) * 2

    x = torch.rand(shape)
    assert torch.compile(rolled, backend="mlir_npu")(x).equal(rolled(x))
    assert "internal error" not in caplog.text


def test_a_constant_position_of_no_dimension(caplog):
    def choose(x):
        return x.index_select(0, torch.tensor([0])) + 1

    x = torch.tensor(2.5)
    torch.testing.assert_close(torch.compile(choose, backend="mlir_npu")(x), choose(x))
    assert "internal error" not in caplog.text
