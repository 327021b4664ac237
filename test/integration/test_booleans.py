"""Booleans between kernels of a region are bytes in memory, in whatever order kernels read them."""

import torch
from parity import check_inference, check_training
from torch import nn


class Gate(nn.Module):
    """A mask made in one order of dimensions, read beside a convolution in another, returned."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x):
        mask = x > 0
        return torch.where(mask, self.convolution(x), x), mask


def test_masks():
    torch.manual_seed(0)
    check_inference(Gate().eval(), torch.randn(2, 16, 14, 13), options={"min_region_macs": 0})


def test_gradients_behind_an_activation():
    torch.manual_seed(0)
    layers = [nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3)]
    image = torch.randn(2, 16, 14, 13, requires_grad=True)
    check_training(nn.Sequential(*layers).eval(), image)
