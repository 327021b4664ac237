"""All networks of the survey."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import torch

from mlir_npu.scripts.networks.survey import audio, backbones, diffusion, text, video
from mlir_npu.scripts.networks.survey.entry import Entry, noise, recipe, seeded


def _noisy_images() -> tuple[torch.Tensor, ...]:
    return (*noise(2, 3, 16, 16)(), torch.tensor([3.0, 700.0]))


def _ours(name: str, network: type, inputs: Callable, fast: bool) -> Entry:
    source = inspect.getsource(inspect.getmodule(network))
    return Entry(name, functools.partial(seeded, network), inputs, recipe(source), fast)


ENTRIES: tuple[Entry, ...] = (
    *backbones.entries(),
    *text.entries(),
    _ours("diffusion U-Net", diffusion.DiffusionUNet, _noisy_images, fast=True),
    _ours("1-D audio codec", audio.AudioCodec, noise(2, 1, 512), fast=False),
    _ours("3-D video network", video.VideoNet, noise(2, 3, 8, 32, 32), fast=True),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}
