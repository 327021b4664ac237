"""Training on real images follows eager: the digits that scikit-learn ships."""

import copy

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from mlir_npu.lowering.report import collect

EPOCHS, BATCH, TRAINED = 10, 64, 1024
OPTIMIZERS = {
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.003),
}


@pytest.fixture(scope="module")
def digits():
    """1,797 images of 8 x 8 with values from 0 to 1, in an order of their own."""
    data = load_digits()
    images = torch.from_numpy(data.images).float()[:, None] / 16
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    return images[order], torch.from_numpy(data.target)[order]


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.SiLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1, groups=4), nn.GELU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def train(model, call, optimizer, images, labels):
    """Mean loss of every epoch, and the accuracy on images that were not trained on."""
    losses = []
    for epoch in range(EPOCHS):
        order = torch.randperm(TRAINED, generator=torch.Generator().manual_seed(epoch))
        total = 0.0
        for batch in order.split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(call(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total * BATCH / TRAINED)
    model.eval()
    with torch.no_grad():
        right = model(images[TRAINED:]).argmax(1) == labels[TRAINED:]
    return torch.tensor(losses), right.float().mean().item()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_epochs_follow_eager(name, digits):
    ours, theirs = network(), network()
    with collect() as reports:
        call = torch.compile(ours, backend="mlir_npu", options={"min_region_macs": 0})
        losses, accuracy = train(ours, call, OPTIMIZERS[name](ours.parameters()), *digits)
    expected, reference = train(theirs, theirs, OPTIMIZERS[name](theirs.parameters()), *digits)
    assert [report.kind for report in reports] == ["forward", "backward"]
    assert all(part.place == "npu" for report in reports for part in report.parts if part.macs)
    torch.testing.assert_close(losses, expected, rtol=0.05, atol=0.02)
    torch.testing.assert_close(losses[0], expected[0], rtol=1e-3, atol=1e-3)
    assert losses[-1] < losses[0] / 5
    assert reference > 0.95 and abs(accuracy - reference) <= 0.01


def test_accumulated_gradients_are_those_of_the_whole_batch(digits):
    """Of a network whose images do not see each other: batch norm in evaluation mode."""
    images, labels = digits
    ours, theirs = network().eval(), network().eval()
    call = torch.compile(ours, backend="mlir_npu", options={"min_region_macs": 0})
    for part in range(4):
        batch = slice(16 * part, 16 * (part + 1))
        (nn.functional.cross_entropy(call(images[batch]), labels[batch]) / 4).backward()
    nn.functional.cross_entropy(theirs(images[:64]), labels[:64]).backward()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("statistics", ["of the batch", "running"])
def test_checkpointed_parts_give_the_same_gradients(statistics, reentrant, digits):
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.first, self.second = model[:4], model[4:]

        def forward(self, x):
            return self.second(checkpoint(self.first, x, use_reentrant=reentrant))

    images, labels = digits
    plain = network().train(statistics == "of the batch")
    model = Checkpointed(copy.deepcopy(plain))
    call = torch.compile(model, backend="mlir_npu", options={"min_region_macs": 0})
    x = images[:16].requires_grad_()  # else a reentrant part has nothing to differentiate
    nn.functional.cross_entropy(call(x), labels[:16]).backward()
    gradient, x.grad = x.grad, None
    nn.functional.cross_entropy(plain(x), labels[:16]).backward()
    torch.testing.assert_close(gradient, x.grad, rtol=1e-3, atol=1e-5)
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-5)


def test_a_gradient_of_a_gradient_is_refused_as_torch_compile_refuses_it():
    model, x = nn.Conv2d(1, 4, 3), torch.randn(1, 1, 8, 8, requires_grad=True)

    def second_derivative(backend):
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=backend)
        (first,) = torch.autograd.grad(compiled(x).pow(3).sum(), x, create_graph=True)
        first.sum().backward()

    messages = []
    for backend in ("aot_eager", "mlir_npu"):
        with pytest.raises(RuntimeError) as raised:
            second_derivative(backend)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
