"""Any strides in, eager's strides out."""

import pytest
import torch
from parity import check_inference, check_training
from torch import nn

CONV = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU()).eval()

INPUTS = {
    "permuted": torch.randn(2, 10, 10, 4).permute(0, 3, 1, 2),
    "channels_last": torch.randn(2, 4, 10, 10).to(memory_format=torch.channels_last),
    "expanded": torch.randn(1, 4, 1, 10).expand(2, 4, 10, 10),
    "every second": torch.randn(2, 4, 20, 20)[:, :, ::2, ::2],
    "offset": torch.randn(2 * 4 * 100 + 3)[3:].view(2, 4, 10, 10),
    "overlapping": torch.randn(2, 4, 19).unfold(2, 10, 1),
    "odd stride of a unit dim": torch.randn(1, 4, 10, 10).as_strided(
        (1, 4, 10, 10), (7, 100, 10, 1)
    ),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(name):
    """peers S1, S2, S12."""
    check_inference(CONV, INPUTS[name])


def test_ambiguous_channels_last():
    """peers S3: one channel, so that NCHW and NHWC strides say the same."""
    conv = nn.Conv2d(1, 5, 1).eval()
    check_inference(conv, torch.randn(1, 1, 7, 5).to(memory_format=torch.channels_last))


def test_channels_last_model():
    """peers S6."""
    model = nn.Sequential(nn.Conv2d(4, 8, 1), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.Sigmoid()).eval()
    model = model.to(memory_format=torch.channels_last)
    check_inference(model, torch.randn(2, 4, 9, 9).to(memory_format=torch.channels_last))


def test_channels_last_training():
    """peers S5, S7."""
    model = nn.Sequential(
        nn.ConvTranspose2d(4, 8, 3),
        nn.ReLU(),
        nn.Conv2d(8, 4, 3),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 4, 3),
    ).to(memory_format=torch.channels_last)
    x = torch.randn(2, 4, 9, 9).to(memory_format=torch.channels_last).requires_grad_()
    check_training(model, x)


def test_transposed_weights():
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(64, 96).t())

        def forward(self, x):
            return torch.relu(x @ self.weight)

    check_inference(Linear().eval(), torch.randn(32, 96))


@pytest.mark.parametrize("shape", [(0, 4, 10, 10), (2, 4, 1, 1)])
def test_empty_and_tiny(shape):
    check_inference(CONV, torch.randn(shape))
