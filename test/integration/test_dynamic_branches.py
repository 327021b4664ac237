"""Branches of `torch.cond`, and sizes that only the data know."""

import pytest
import torch
from dynamic_networks import Captures
from parity import assert_gradients_close, assert_same
from torch import nn

from mlir_npu.lowering.report import collect


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fallback", ["llvm", "inductor", "eager"])
def test_cond(dynamic, fallback):
    first, second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(3, 4, 5, padding=2)

    def model(x):
        y = first(x).relu()
        z = torch.cond(x.sum() > 0, lambda a: first(a).relu(), lambda a: second(a) * 2, (x,))
        return y + z

    captures = Captures(fallback=fallback)
    compiled = torch.compile(model, backend=captures, fullgraph=True, dynamic=dynamic)
    with torch.no_grad(), collect() as reports:
        for batch in (2, 3):
            for sign in (1, -1):
                x = torch.rand(batch, 3, 12, 12) * sign
                assert_same(compiled(x), model(x))
    assert captures.count == (1 if dynamic else 2)
    assert all(report.regions for report in reports)
    branches = [report for report in reports if report.kind == "branch"]
    assert len(branches) == (0 if fallback == "inductor" else 4)


def test_training_through_branches():
    conv = nn.Conv2d(3, 4, 3, padding=1)
    head = nn.Conv2d(4, 4, 1)

    def model(x):
        y = conv(x).relu()
        return torch.cond(y.mean() > 0.2, lambda a: head(a).tanh(), lambda a: a * 2, (y,))

    compiled = torch.compile(model, backend="mlir_npu", fullgraph=True, dynamic=True)
    for batch, scale in (2, 1.0), (3, 3.0):
        x = torch.randn(batch, 3, 12, 12) * scale
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        compiled(ours).square().sum().backward()
        mine = conv.weight.grad.clone()
        conv.zero_grad(), head.zero_grad()
        model(theirs).square().sum().backward()
        assert_gradients_close([ours.grad, mine], [theirs.grad, conv.weight.grad])
        conv.zero_grad(), head.zero_grad()


def test_strict_allows_conditions_but_not_host_work_in_branches():
    conv = nn.Conv2d(3, 4, 3, padding=1).eval()

    def model(function):
        return lambda x, p: torch.cond(p, lambda a: function(conv(a)), conv, (x,))

    x, p = torch.randn(2, 3, 64, 64), torch.tensor(True)
    with torch.no_grad():
        strict = {"backend": "mlir_npu", "options": {"strict": True}, "fullgraph": True}
        good = model(torch.relu)
        assert_same(torch.compile(good, **strict)(x, p), good(x, p))
        with pytest.raises(Exception, match="aten.sin"):
            torch.compile(model(torch.sin), **strict)(x, p)


# ---- sizes that only the data know --------------------------------------------------------------


def picked_by_nonzero(conv, x):
    y = torch.relu(conv(x[None, None]))[0, 0]
    found = (y > 0.1).nonzero()
    picked = y[found[:, 0], found[:, 1]] * 2
    return picked.sum() + picked.softmax(0).square().sum()


def picked_by_mask(conv, x):
    y = conv(x[None, None])
    return y[y > 0.1].square().sum()


def picked_and_convolved_again(conv, x):
    y = conv(x[None, None])
    rows = y.mean((0, 1, 3)).nonzero()[:, 0]
    torch._check(rows.shape[0] >= 3)
    return nn.functional.conv2d(x[rows][None, None], conv.weight).square().sum()


def counted(conv, x):
    y = torch.relu(conv(x[None, None]))
    return y.square().sum() / (y > 0.1).nonzero().shape[0]


@pytest.mark.parametrize(
    "program", [picked_by_nonzero, picked_by_mask, picked_and_convolved_again, counted]
)
@pytest.mark.parametrize("fallback", ["llvm", "inductor", "eager"])
def test_indices_that_only_the_data_know(program, fallback):
    """peers D6: the result of eager, or the error that PyTorch's own backend raises."""
    conv = nn.Conv2d(1, 4, 3, padding=1)
    flags = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}

    def step(backend, x, **keywords):
        with torch._dynamo.config.patch(flags):
            compiled = torch.compile(
                program, backend=backend, fullgraph=True, dynamic=True, **keywords
            )
            given = x.clone().requires_grad_()
            result = compiled(conv, given)
            result.backward()
        return result.detach(), given.grad

    for size in (20, 30):
        x = torch.randn(size, size)
        try:
            upstream = step("aot_eager", x)
        except Exception as error:
            torch._dynamo.reset()
            with pytest.raises(type(error)) as caught:
                step("mlir_npu", x, options={"fallback": fallback})
            assert type(caught.value.__cause__) is type(error.__cause__)
            continue
        torch._dynamo.reset()
        ours = step("mlir_npu", x, options={"fallback": fallback})
        torch.testing.assert_close(ours, upstream, rtol=1e-3, atol=1e-4)


def test_data_dependent_sizes_compile_nothing_anew():
    conv = nn.Conv2d(1, 4, 3, padding=1).eval()
    captures = Captures()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), torch.no_grad():
        compiled = torch.compile(picked_by_nonzero, backend=captures, fullgraph=True, dynamic=True)
        with collect() as reports:
            for _ in range(5):
                x = torch.randn(20, 20)
                assert_same(compiled(conv, x), picked_by_nonzero(conv, x))
    assert captures.count == len(reports) == 1
    assert reports[0].regions
