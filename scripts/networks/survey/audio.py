"""A 1-D network for sound: down by strided convolutions, up by transposed ones."""

from __future__ import annotations

import torch
from torch import nn


class Snake(nn.Module):
    """x + sin(a x)^2 / a with a trained per channel: an activation for periodic signals."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.sin(self.alpha * x).square() / self.alpha


class Dilated(nn.Module):
    """A residual block that sees far: a dilated convolution, padded by reflection."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            Snake(channels),
            nn.ReflectionPad1d(dilation),
            nn.Conv1d(channels, channels, 3, dilation=dilation),
            nn.ELU(),
            nn.Conv1d(channels, channels, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class AudioCodec(nn.Module):
    """Sound [n, 1, 512] to 64 codes of 32 numbers and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3),
            Dilated(16, 1),
            Dilated(16, 3),
            nn.Conv1d(16, 24, 4, stride=2, padding=1),
            Dilated(24, 9),
            nn.Conv1d(24, 32, 8, stride=4, padding=2),
            nn.InstanceNorm1d(32, affine=True),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(32, 24, 8, stride=4, padding=2),
            Dilated(24, 9),
            nn.ConvTranspose1d(24, 16, 3, stride=2, padding=1, output_padding=1, groups=8),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose1d(16, 16, 3, padding=2, dilation=2, groups=16, bias=False),
            nn.Conv1d(16, 1, 7, padding=3),
            nn.Tanh(),
        )

    def forward(self, sound: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        codes = self.encoder(sound)
        return self.decoder(codes), codes
