"""Another default device is for tensors that the user makes: what runs here stays on the CPU."""

import pytest
import torch
from parity import compile_model
from torch import nn
from torch.nn import functional as F

from mlir_npu import capture

IMAGES = torch.randn(1, 4, 96, 96)


class Model(nn.Module):
    """Packs weights, makes a large result and one with gaps, and runs a part on the host."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 32, 3, padding=1)
        self.head = nn.Conv2d(32, 8, 3)

    def forward(self, x):
        x = F.avg_pool2d(self.conv(x).relu(), 3, 1, 1)
        return x, self.head(x.sin()).mean((2, 3)).softmax(1).expand(3, 1, 8)


MODEL = Model().eval()


def compile_on(device):
    torch._dynamo.reset()
    return compile_model(MODEL)


def capture_on(device):
    with torch.device(device):
        return capture(MODEL, IMAGES)


@pytest.mark.parametrize("make", [compile_on, capture_on])
def test_results_are_on_the_cpu(make):
    with torch.no_grad():
        expected = MODEL(IMAGES)
        compiled = make("meta")
        for _ in range(2):
            with torch.device("meta"):
                actual = compiled(IMAGES)
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
            del actual


def test_training():
    compiled = compile_on("meta")
    gradients = []
    for model, device in ((MODEL, "cpu"), (compiled, "meta")):
        x = IMAGES.clone().requires_grad_()
        with torch.device(device):
            features, scores = model(x)
            (features.square().mean() + scores[0, 0, 0]).backward()
        gradients.append(x.grad)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-6)
