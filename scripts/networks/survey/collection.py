"""All networks of the survey."""

from __future__ import annotations

import functools

import torch

from mlir_npu.scripts.networks.survey import audio, backbones, diffusion, text, video
from mlir_npu.scripts.networks.survey.entry import Entry, noise, seeded


def _noisy_images() -> tuple[torch.Tensor, ...]:
    return (*noise(2, 3, 16, 16)(), torch.tensor([3.0, 700.0]))


ENTRIES: tuple[Entry, ...] = (
    *backbones.entries(),
    *text.entries(),
    Entry(
        "diffusion U-Net",
        functools.partial(seeded, diffusion.DiffusionUNet),
        _noisy_images,
        fast=True,
    ),
    Entry(
        "1-D audio codec", functools.partial(seeded, audio.AudioCodec), noise(2, 1, 512), fast=True
    ),
    Entry(
        "3-D video network",
        functools.partial(seeded, video.VideoNet),
        noise(2, 3, 8, 32, 32),
        fast=True,
    ),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}
