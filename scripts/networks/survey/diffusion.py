"""The network of a small diffusion model: a U-Net that is told how much noise its image holds.

Residual blocks with group norm and SiLU, attention at the coarse scale, strided and nearest
resampling, a sinusoidal embedding of the time step.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

CHANNELS, TIME, GROUPS = 16, 32, 4


class Residual(nn.Module):
    """Two convolutions; the time embedding shifts the channels between them."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, inputs), nn.GroupNorm(GROUPS, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(TIME, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class Attention(nn.Module):
    """Every position looks at every other, in two heads."""

    def __init__(self, channels: int, heads: int = 2) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        qkv = self.qkv(self.norm(x)).reshape(n, 3, self.heads, c // self.heads, h * w)
        q, k, v = qkv.transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(n, c, h, w))


class DiffusionUNet(nn.Module):
    """Noisy images [n, 3, 16, 16] and time steps [n] to the noise, [n, 3, 16, 16]."""

    def __init__(self) -> None:
        super().__init__()
        fine, coarse = CHANNELS, 2 * CHANNELS
        self.time = nn.Sequential(nn.Linear(CHANNELS, TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.stem = nn.Conv2d(3, fine, 3, padding=1)
        self.down1, self.down2 = Residual(fine, fine), Residual(fine, coarse)
        self.shrink = nn.Conv2d(fine, fine, 3, stride=2, padding=1)
        self.middle1, self.middle2 = Residual(coarse, coarse), Residual(coarse, coarse)
        self.attention = Attention(coarse)
        self.up2, self.up1 = Residual(2 * coarse, coarse), Residual(coarse + fine, fine)
        self.grow = nn.Conv2d(coarse, coarse, 3, padding=1)
        self.norm, self.head = nn.GroupNorm(GROUPS, fine), nn.Conv2d(fine, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        time = self.time(embedding(steps))
        fine = self.down1(self.stem(x), time)
        coarse = self.down2(self.shrink(fine), time)
        y = self.middle2(self.attention(self.middle1(coarse, time)), time)
        y = self.up2(torch.cat([y, coarse], 1), time)
        y = self.grow(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        y = self.up1(torch.cat([y, fine], 1), time)
        return self.head(F.silu(self.norm(y)))


def embedding(steps: torch.Tensor) -> torch.Tensor:
    """Sines and cosines of the time steps, of frequencies from 1 to 1/10000."""
    half = CHANNELS // 2
    exponents = torch.arange(half, dtype=steps.dtype, device=steps.device) / half
    angles = steps[:, None] * torch.exp(-math.log(10_000) * exponents)
    return torch.cat([angles.sin(), angles.cos()], 1)
