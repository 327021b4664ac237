"""Together with other parts of PyTorch: DDP, compiled optimizers, many shapes, modes, autocast."""

import copy

import pytest
import torch
from parity import assert_gradients_close, assert_same, check_inference, check_training
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        return torch.softmax(self.head(y.cos().mean((2, 3))), 1)


@pytest.fixture
def process_group(tmp_path):
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize("fallback", ["inductor", "llvm"])
@pytest.mark.parametrize("compile_first", [True, False])
def test_ddp(process_group, compile_first, fallback):
    """peers T2, S7."""
    ours, theirs = (model := Net()), copy.deepcopy(model)
    how = {"backend": "mlir_npu", "options": {"fallback": fallback}}
    if compile_first:
        compiled = DistributedDataParallel(torch.compile(ours, **how))
    else:
        compiled = torch.compile(DistributedDataParallel(ours), **how)
    for _ in range(2):
        x = torch.randn(2, 3, 12, 12)
        actual, expected = compiled(x), theirs(x)
        assert_same(actual.detach(), expected.detach())
        actual.square().sum().backward()
        expected.square().sum().backward()
    for mine, other in zip(ours.parameters(), theirs.parameters()):
        assert_gradients_close(mine.grad, other.grad)


def test_a_compiled_optimizer_step():
    """peers M6: parameters are changed inside of a graph."""
    ours, theirs = (model := Net()), copy.deepcopy(model)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (ours, theirs)]
    compiled = torch.compile(ours, backend="mlir_npu")
    step = torch.compile(optimizers[0].step, backend="mlir_npu")
    x = torch.randn(2, 3, 12, 12)
    for _ in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        compiled(x).square().sum().backward()
        theirs(x).square().sum().backward()
        step()
        optimizers[1].step()
        for mine, other in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
    assert_same(compiled(x).detach(), theirs(x).detach())


def test_more_shapes_than_dynamo_compiles():
    """peers D10: beyond the recompile limit, shapes run in eager and compiled ones stay."""
    model = nn.Conv2d(3, 8, 3).eval()
    compiled = torch.compile(model, backend="mlir_npu")
    with torch.no_grad():
        for batch in (*range(1, 12), 2):
            x = torch.randn(batch, 3, 12, 12)
            assert_same(compiled(x), model(x))


def test_modes():
    """peers T3."""
    model, x = nn.Conv2d(3, 8, 3).eval(), torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        assert_same(torch.compile(model, backend="mlir_npu", mode="default")(x), model(x))
        assert_same(torch.compile(model, backend="mlir_npu", mode="max-autotune")(x), model(x))
        with pytest.raises(Exception, match="or 'max-autotune', got 'reduce-overhead'"):
            torch.compile(model, backend="mlir_npu", mode="reduce-overhead")(x)


def test_other_dtypes_run_on_the_host():
    model = Net().eval().to(torch.float64)
    check_inference(model, torch.randn(2, 3, 12, 12, dtype=torch.float64))


def test_autocast():
    model, x = Net().eval(), torch.randn(2, 3, 12, 12)
    compiled = torch.compile(model, backend="mlir_npu")
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(compiled(x), model(x), rtol=2e-2, atol=2e-2)


def test_dropout_draws_from_the_generator_of_eager():
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout(0.5)).train(), torch.randn(2, 3, 12, 12)
    compiled = torch.compile(model, backend="mlir_npu")
    torch.manual_seed(1)
    actual = compiled(x)
    torch.manual_seed(1)
    assert_same(actual.detach(), model(x).detach())


def test_gradients_of_gradients_are_refused_by_autograd():
    model, x = nn.Conv2d(3, 8, 3), torch.randn(1, 3, 12, 12, requires_grad=True)
    loss = torch.compile(model, backend="mlir_npu")(x).square().sum()
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.sum().backward()


def test_shared_parameters_and_repeated_modules():
    conv = nn.Conv2d(4, 4, 3, padding=1)
    check_training(nn.Sequential(conv, nn.ReLU(), conv, nn.Tanh(), conv), torch.randn(1, 4, 12, 12))
