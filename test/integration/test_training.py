"""Forward and backward both come to the backend, and gradients are eager's."""

import pytest
import torch
from parity import assert_gradients_close, check_training, compile_model
from torch import nn

from mlir_npu.lowering.report import collect


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 16, 3, stride=2, padding=1, groups=4, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv1(x)))
        x = self.pool(torch.nn.functional.silu(self.conv2(x)))
        return self.head(x.mean((2, 3)))


@pytest.mark.parametrize("fallback", ["llvm", "eager"])
@pytest.mark.parametrize("training", [True, False])
def test_gradients_equal_eager(training, fallback):
    model = Classifier().train(training)
    check_training(
        model, torch.randn(2, 3, 16, 16, requires_grad=True), options={"fallback": fallback}
    )


def test_the_backward_graph_comes_to_the_backend():
    """peers C10."""
    model = Classifier()
    with collect() as reports:
        compile_model(model)(torch.randn(2, 3, 16, 16)).sum().backward()
    assert [report.kind for report in reports] == ["forward", "backward"]
    assert any("aten.convolution_backward" in op for part in reports[1].parts for op in part.ops)


def test_forward_convolutions_of_training_run_on_the_npu():
    with collect() as reports:
        compile_model(Classifier())(torch.randn(2, 3, 16, 16))
    on_npu = [op for part in reports[0].regions for op in part.ops]
    assert on_npu.count("aten.convolution.default") == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
        lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    ],
)
def test_training_follows_eager(make):
    import copy

    model = Classifier()
    twin = copy.deepcopy(model)
    compiled = compile_model(model)
    optimizers = make(model.parameters()), make(twin.parameters())
    losses = [], []
    for _ in range(6):
        x, y = torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))
        for network, optimizer, history in zip((compiled, twin), optimizers, losses):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(x), y)
            loss.backward()
            optimizer.step()
            history.append(loss.item())
    torch.testing.assert_close(
        torch.tensor(losses[0]), torch.tensor(losses[1]), rtol=2e-3, atol=2e-3
    )
    assert losses[0][0] != losses[0][-1]


def test_an_input_without_gradient_keeps_the_gradient_count():
    """peers C3: the third gradient of a convolution whose input needs none is None."""
    check_training(nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU()), torch.randn(1, 4, 9, 9))


def test_frozen_layers_get_no_gradient():
    model = Classifier()
    model.conv1.weight.requires_grad_(False)
    check_training(model, torch.randn(2, 3, 16, 16))


def test_backward_twice_with_retain_graph():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    x = torch.randn(1, 3, 8, 8)
    loss = compile_model(model)(x).sum()
    loss.backward(retain_graph=True)
    once = model[0].weight.grad.clone()
    loss.backward()
    torch.testing.assert_close(model[0].weight.grad, 2 * once)


def test_gradients_accumulate():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    compiled = compile_model(model)
    x = torch.randn(1, 3, 8, 8)
    compiled(x).sum().backward()
    once = model[0].weight.grad.clone()
    compiled(x).sum().backward()
    torch.testing.assert_close(model[0].weight.grad, 2 * once)


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "expanded"])
def test_tangents_of_any_strides(layout):
    """peers S8: gradients may arrive with other strides than the output had."""
    model = nn.Conv2d(3, 8, 3, padding=1)
    reference = nn.Conv2d(3, 8, 3, padding=1)
    reference.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 8, 8)
    tangent = {
        "channels_last": torch.randn(2, 8, 8, 8).to(memory_format=torch.channels_last),
        "transposed": torch.randn(2, 8, 8, 8).transpose(2, 3),
        "expanded": torch.randn(1, 8, 1, 1).expand(2, 8, 8, 8),
    }[layout]
    compile_model(model)(x).backward(tangent)
    reference(x).backward(tangent)
    assert_gradients_close(model.weight.grad, reference.weight.grad)


def test_two_outputs_of_one_shape_keep_their_tangents():
    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)

        def forward(self, x):
            return self.a(x), torch.sin(self.b(x))

    check_training(Twins(), torch.randn(1, 3, 8, 8))
