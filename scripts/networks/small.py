"""Small networks with the shapes of well-known ones: each compiles in seconds.

They join what the large ones keep apart: concatenation, skip connections, gates, pooling of every
kind, dilation, groups.
"""

from __future__ import annotations

import torch
from torch import nn


class Fire(nn.Module):
    """SqueezeNet's module: squeeze to few channels, expand by 1x1 and 3x3, concatenate."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.expand1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3 = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.squeeze(x).relu()
        return torch.cat([self.expand1(x).relu(), self.expand3(x).relu()], dim=1)


def squeezenet() -> nn.Sequential:
    """[n, 3, 64, 64] to [n, 10]; max pool with ceil_mode, as the original."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, ceil_mode=True),
        Fire(16, 8, 16),
        Fire(32, 8, 24),
        nn.Conv2d(48, 10, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


class UNet(nn.Module):
    """Two scales down and up with skip connections: [n, 3, 32, 32] to [n, 2, 32, 32].

    Images may be larger by any factor; `width` is the number of channels at the finest scale.
    """

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        fine, coarse, bottom = width, 2 * width, 4 * width
        self.down1, self.down2 = self.block(3, fine), self.block(fine, coarse)
        self.bottom = self.block(coarse, bottom)
        self.up2, self.up1 = self.block(bottom + coarse, coarse), self.block(coarse + fine, fine)
        self.head = nn.Conv2d(fine, 2, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(0.1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def up(y: torch.Tensor) -> torch.Tensor:
            return nn.functional.interpolate(y, scale_factor=2, mode="nearest")

        fine = self.down1(x)
        coarse = self.down2(nn.functional.max_pool2d(fine, 2))
        y = self.bottom(nn.functional.avg_pool2d(coarse, 2))
        y = self.up2(torch.cat([up(y), coarse], dim=1))
        y = self.up1(torch.cat([up(y), fine], dim=1))
        return self.head(y)


class SqueezeExcite(nn.Module):
    """A residual block with a gate per channel, as in EfficientNet: [n, 16, 28, 28] to the same."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        self.norm = nn.BatchNorm2d(channels)
        self.reduce = nn.Conv2d(channels, 4, 1)
        self.expand = nn.Conv2d(4, channels, 1)
        self.project = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.silu(self.norm(self.depthwise(x)))
        gate = nn.functional.silu(self.reduce(y.mean((2, 3), keepdim=True)))
        y = y * torch.sigmoid(self.expand(gate))
        return x + self.project(y)


def vgg() -> nn.Sequential:
    """[n, 3, 32, 32] to [n, 10]; ends in linear layers with a dropout that eval mode skips."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(64 * 16, 96), nn.ReLU(), nn.Dropout(), nn.Linear(96, 10)
    )


def resnext() -> nn.Sequential:
    """[n, 8, 14, 14] to [n, 32, 4, 4]: grouped and dilated convolutions, hard activations."""
    return nn.Sequential(
        nn.Conv2d(8, 32, 3, padding=2, dilation=2, groups=4),
        nn.Hardswish(),
        nn.Conv2d(32, 32, (3, 1), padding=(1, 0), groups=8),
        nn.ReLU6(),
        nn.Conv2d(32, 32, 3, stride=(3, 4), padding=(0, 1)),
        nn.GELU(),
    )
