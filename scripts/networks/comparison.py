"""How far a compiled network may be from eager, and how far it is.

Both add the same products in different orders. The rounding errors of a sum of K terms add up like
a random walk, so each of the two is off by about sqrt(K) units in the last place of a layer's
values; the next layers pass that on and add their own, again independently. Hence, for layers l
with K_l terms per output value:

    tolerance = 2 * eps * sqrt(sum over l of K_l) * largest |output|

Nothing in it is picked to let a network pass: it is 1.9e-6 of the largest output for one 1x1
convolution of 64 channels, and 4.2e-5 of it for ResNet-18.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

SUMMING = (nn.Conv1d, nn.Conv2d, nn.Linear)


@dataclass(frozen=True)
class Difference:
    """The largest absolute difference of two results, and what is tolerated."""

    largest: float
    tolerance: float

    @property
    def acceptable(self) -> bool:
        return self.largest <= self.tolerance  # false for NaN


def relative_tolerance(model: nn.Module) -> float:
    """The tolerance in parts of the largest output value, from the model's reduction lengths."""
    lengths = [m.weight[0].numel() for m in model.modules() if isinstance(m, SUMMING)]
    return 2 * torch.finfo(torch.float32).eps * math.sqrt(sum(lengths))


def compare(model: nn.Module, expected: torch.Tensor, actual: torch.Tensor) -> Difference:
    """Compares two outputs of `model`, which must have the same shape and dtype."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        raise ValueError(
            f"eager gives {expected.dtype} {tuple(expected.shape)}, "
            f"the compiled network {actual.dtype} {tuple(actual.shape)}"
        )
    scale = expected.abs().max().item()
    return Difference(
        largest=(expected - actual).abs().max().item(),
        tolerance=relative_tolerance(model) * scale,
    )
