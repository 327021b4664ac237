"""Inputs of captured graphs have the names that the user gave them."""

import torch
from torch import nn

from mlir_npu.lowering.report import collect


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        self.register_buffer("shift", torch.ones(8, 1, 1))

    def forward(self, image, options):
        y = self.body(image) + self.shift + options["bias"]
        return y, torch.tanh(y)


def sources(train: bool) -> dict[str, str]:
    model = Net().train(train)
    compiled = torch.compile(model, backend="mlir_npu", options={"fallback": "eager"})
    with collect() as reports, torch.set_grad_enabled(train):
        first, second = compiled(torch.randn(1, 3, 9, 9), {"bias": torch.ones(8, 7, 7)})
        if train:
            (first.sum() + second.sum()).backward()
    return {report.kind: report.source for report in reports}


def test_parameters_buffers_and_arguments():
    source = sources(train=False)["inference"]
    for text in (
        "# parameter body.0.weight: float32[8, 3, 3, 3]",
        "# buffer body.1.running_mean: float32[8]",
        "# buffer shift: float32[8, 1, 1]",
        "# argument image: float32[1, 3, 9, 9]",
        "# argument options['bias']: float32[8, 7, 7]",
    ):
        assert text in source


def test_the_backward_names_gradients_after_the_results_they_belong_to():
    forward, backward = sources(train=True).values()
    assert "tanh" in forward
    assert "grad_tanh,  # gradient of the forward's tanh: float32[1, 8, 7, 7]" in backward
    assert "# saved by the forward: " in backward
    assert "# parameter body.0.weight: float32[8, 3, 3, 3]" in backward
    assert "tangents" not in backward
