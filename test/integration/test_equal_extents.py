"""Images with as many channels as rows and columns: both orders of dimensions have one shape."""

import pytest
import torch
from parity import check_inference, check_training
from torch import nn

MODELS = {
    "convolution": lambda c: nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU()),
    "direct": lambda c: nn.Sequential(nn.Conv2d(c, c, 5, padding=2), nn.ReLU()),
    "pointwise": lambda c: nn.Sequential(nn.Conv2d(c, c, 1), nn.Hardswish()),
    "depthwise": lambda c: nn.Conv2d(c, c, 3, padding=1, groups=c),
    "average": lambda c: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
    "two": lambda c: nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.MaxPool2d(3, 1, 1)),
}


@pytest.mark.parametrize("channels", [4, 40])
@pytest.mark.parametrize("kind", MODELS)
def test_inference(kind, channels):
    torch.manual_seed(0)
    model = MODELS[kind](channels).eval()
    image = torch.randn(2, channels, channels, channels)
    check_inference(model, image, options={"min_region_macs": 0})


@pytest.mark.parametrize("kind", ["direct", "depthwise"])
def test_training(kind):
    torch.manual_seed(0)
    image = torch.randn(2, 12, 12, 12, requires_grad=True)
    check_training(MODELS[kind](12), image, options={"min_region_macs": 0})
