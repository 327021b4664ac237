"""A 3-D network for video: full and factored convolutions over time and space."""

from __future__ import annotations

import torch
from torch import nn


def unit(inputs: int, outputs: int, kernel, stride=1, groups: int = 1) -> nn.Sequential:
    """Convolution that keeps the size (but for its stride), batch norm, ReLU."""
    kernel = (kernel,) * 3 if isinstance(kernel, int) else kernel
    padding = tuple(extent // 2 for extent in kernel)
    return nn.Sequential(
        nn.Conv3d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm3d(outputs),
        nn.ReLU(),
    )


class VideoNet(nn.Module):
    """Clips [n, 3, 8, 32, 32] to [n, 10]: a full 3x3x3 stem, then space and time in turn, a
    depthwise block, pooling in 3-D."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = unit(3, 16, 3, stride=(1, 2, 2))
        self.pool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        self.space, self.time = unit(16, 24, (1, 3, 3)), unit(24, 24, (3, 1, 1), (2, 1, 1))
        self.depthwise, self.mix = unit(24, 24, 3, groups=24), unit(24, 32, 1)
        self.shrink = nn.AvgPool3d(2)
        self.head = nn.Linear(32, 10)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.stem(clips))
        x = self.time(self.space(x))
        x = self.shrink(self.mix(x + self.depthwise(x)))
        return self.head(x.mean((2, 3, 4)))
