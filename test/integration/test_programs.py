"""Programs around the graph: other shapes, threads, graph breaks, inference mode."""

import threading

import torch
from parity import assert_gradients_close, assert_same, check_inference, compile_model
from torch import nn


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
    assert_gradients_close(grads, expected)
