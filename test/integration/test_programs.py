"""Programs around the graph: shapes that change, threads, graph breaks, inference mode."""

import threading

import pytest
import torch
from parity import assert_same, check_inference, compile_model
from torch import nn

from mlir_npu.lowering.report import collect


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ).eval()


def test_another_shape_compiles_anew():
    """peers K1, K2."""
    model = network()
    compiled = compile_model(model)
    with torch.no_grad():
        for size in (8, 12, 16, 8):
            x = torch.randn(1, 3, size, size)
            assert_same(compiled(x), model(x))


@pytest.mark.parametrize("dynamic", [True, False, None])
def test_batch_sizes(dynamic):
    """peers D7, D8, D9, D11: SymInt inputs are right, whatever runs them."""
    model = network()
    compiled = torch.compile(model, backend="mlir_npu", dynamic=dynamic)
    with torch.no_grad():
        for batch in (2, 3, 5, 1):
            x = torch.randn(batch, 3, 8, 8)
            assert_same(compiled(x), model(x))


@pytest.mark.parametrize("train", [False, True])
def test_a_size_that_changes_stays_on_the_npu(train):
    """Dynamo makes a size symbolic when it changes; it is fixed again, and guarded."""
    model = network().train(train)
    compiled = torch.compile(model, backend="mlir_npu")
    with collect() as reports, torch.set_grad_enabled(train):
        for batch in (2, 3, 4, 3, 2):
            x = torch.randn(batch, 3, 16, 16)
            assert_same(compiled(x).detach(), model(x).detach())
    assert len(reports) == 3, "three sizes, and each is compiled once"
    assert all(report.regions for report in reports)


def test_sizes_that_the_user_marks_dynamic_stay_symbols():
    model = network()
    compiled = torch.compile(model, backend="mlir_npu")
    with collect() as reports, torch.no_grad():
        for batch in (2, 3, 4):
            x = torch.randn(batch, 3, 16, 16)
            torch._dynamo.mark_dynamic(x, 0)
            assert_same(compiled(x), model(x))
    (report,) = reports
    assert not report.regions
    assert "dynamic shape" in report.rejections[0].reason


def test_numbers_that_change():
    """A number that Dynamo makes symbolic is no size, and is not fixed."""
    conv = nn.Conv2d(3, 4, 3).eval()
    compiled = torch.compile(lambda x, n: torch.relu(conv(x) * n), backend="mlir_npu")
    x = torch.randn(1, 3, 16, 16)
    with collect() as reports, torch.no_grad():
        for number in range(12):
            assert_same(compiled(x, number), torch.relu(conv(x) * number))
    assert len(reports) <= 4


def test_numbers_that_shapes_depend_on():
    """Dynamo makes the second stride symbolic; each is compiled once, for the NPU."""
    conv = nn.Conv2d(3, 16, 3).eval()

    def model(x, stride):
        return torch.relu(nn.functional.conv2d(x, conv.weight, conv.bias, stride))

    compiled, x = torch.compile(model, backend="mlir_npu"), torch.randn(1, 3, 16, 16)
    with collect() as reports, torch.no_grad():
        for stride in (1, 2, 3, 2, 1):
            assert_same(compiled(x, stride), model(x, stride))
    assert len(reports) == 3
    assert all(report.regions and not report.rejections for report in reports)


def test_dynamic_training():
    """peers D9."""
    import copy

    ours = network().train()
    theirs = copy.deepcopy(ours)
    compiled = torch.compile(ours, backend="mlir_npu", dynamic=True)
    for batch in (2, 3, 4):
        x = torch.randn(batch, 3, 8, 8)
        compiled(x).sum().backward()
        theirs(x).sum().backward()
    torch.testing.assert_close(ours[0].weight.grad, theirs[0].weight.grad, rtol=1e-3, atol=1e-4)


def test_sizes_used_as_numbers():
    """peers C8: a size computed in one part is an int in the next."""
    conv = nn.Conv2d(3, 4, 3).eval()

    def model(x):
        y = conv(x)
        return y + torch.arange(y.shape[-1]), y.shape[0] * 2

    check_inference(model, torch.randn(2, 3, 9, 9))


def test_inference_mode():
    model, x = network(), torch.randn(1, 3, 8, 8)
    compiled = compile_model(model)
    with torch.inference_mode():
        for _ in range(2):
            assert_same(compiled(x), model(x))


def test_threads_share_a_compiled_model():
    """peers T1."""
    model = network()
    compiled = compile_model(model)
    inputs = [torch.randn(1, 3, 16, 16) for _ in range(8)]
    with torch.no_grad():
        expected = [model(x) for x in inputs]
        compiled(inputs[0])
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with torch.no_grad():
                for _ in range(20):
                    assert_same(compiled(inputs[number]), expected[number])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_compile_at_the_same_time():
    """peers T1."""
    torch._dynamo.lookup_backend("mlir_npu")  # the registry of torch is not for threads
    models = [
        nn.Sequential(nn.Conv2d(3, 4 + n, 3), nn.ReLU(), nn.Conv2d(4 + n, 2, 1)) for n in range(4)
    ]
    x = torch.randn(1, 3, 16, 16)
    failures: list[BaseException] = []

    def work(model: nn.Module) -> None:
        try:
            result = compile_model(model)(x)
            assert_same(result.detach(), model(x).detach())
            result.sum().backward()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert all(model[0].weight.grad is not None for model in models)


def test_data_dependent_python():
    conv = nn.Conv2d(3, 4, 3).eval()

    def model(x):
        y = conv(x)
        if y.sum().item() > 0:
            return torch.relu(y)
        return torch.sigmoid(y) + y.nonzero().shape[0]

    check_inference(model, torch.randn(1, 3, 9, 9))
    check_inference(model, -torch.randn(1, 3, 9, 9))


def test_a_convolution_under_vmap_or_checkpoint():
    from torch.utils.checkpoint import checkpoint

    model = network().train()
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    compiled = compile_model(lambda x: checkpoint(model, x, use_reentrant=False))
    grads = torch.autograd.grad(compiled(x).sum(), x)
    expected = torch.autograd.grad(model(x).sum(), x)
    torch.testing.assert_close(grads, expected, rtol=1e-3, atol=1e-4)


def test_indices_that_only_the_data_know():
    """peers D6: nonzero inside of one dynamic graph, forward and backward, after a convolution."""
    conv = nn.Conv2d(1, 4, 3, padding=1)

    def model(x):
        y = torch.relu(conv(x[None, None]))[0, 0]
        found = (y > 0.1).nonzero()
        picked = y[found[:, 0], found[:, 1]] * 2
        return picked.sum(), picked.softmax(0).square().sum()

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(model, backend="mlir_npu", fullgraph=True, dynamic=True)
        for size in (20, 30):
            ours = torch.randn(size, size, requires_grad=True)
            theirs = ours.detach().clone().requires_grad_()
            sum(compiled(ours)).backward()
            sum(model(theirs)).backward()
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4)
