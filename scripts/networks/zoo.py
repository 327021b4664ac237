"""Real networks with their inputs: the three that the demo compiles, and ResNet-50.

The ResNets and MobileNetV2 are those of the package transformers, built from their configurations
with seeded random weights (no weights are downloaded); CREPE tiny has its trained weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from mlir_npu.scripts.networks import crepe

IMAGE = 224  # pixels, both ways
CLASSES = 1000
TONES = (110.0, 220.0, 440.0, 880.0)  # Hz


@dataclass(frozen=True)
class Network:
    """A network with what the demo holds it to.

    `build` returns the module in eval mode, `inputs` its input tensors. `max_regions` is the most
    NPU regions it may need (None: any number).
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    max_regions: int | None = None


class Classifier(nn.Module):
    """A classifier of transformers as a function from pixels to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model(pixels).logits


def images() -> tuple[torch.Tensor, ...]:
    """One seeded image [1, 3, 224, 224], normalised like a photograph: mean 0, deviation 1."""
    return (torch.randn(1, 3, IMAGE, IMAGE, generator=torch.Generator().manual_seed(7)),)


def resnet18() -> nn.Module:
    """ResNet-18: basic blocks, 1000 classes, 1.81 G multiply-accumulates."""
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(18)
    config = ResNetConfig(
        depths=[2, 2, 2, 2],
        hidden_sizes=[64, 128, 256, 512],
        layer_type="basic",
        num_labels=CLASSES,
    )
    return settle(Classifier(ResNetForImageClassification(config)))


def resnet50() -> nn.Module:
    """ResNet-50: bottleneck blocks, 1000 classes, 4.09 G multiply-accumulates."""
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(50)
    config = ResNetConfig(num_labels=CLASSES)  # the defaults are those of ResNet-50
    return settle(Classifier(ResNetForImageClassification(config)))


def mobilenet_v2() -> nn.Module:
    """MobileNetV2 1.0: inverted residuals with depthwise convolutions and ReLU6, 1000 classes."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    torch.manual_seed(2)
    config = MobileNetV2Config(image_size=IMAGE, num_labels=CLASSES)
    return settle(Classifier(MobileNetV2ForImageClassification(config)))


def settle(model: nn.Module) -> nn.Module:
    """Gives random weights the batch-norm statistics of real activations; returns in eval mode.

    Without them the activations of an untrained network die out or blow up layer by layer, and a
    comparison would see little of the early layers.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    batch = torch.randn(4, 3, IMAGE, IMAGE, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        model.train()(batch)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return model.eval()


def tones() -> tuple[torch.Tensor, ...]:
    """The demo's tones as one batch of frames [4, 1024]."""
    return (torch.cat([crepe.tone(frequency) for frequency in TONES]),)


RESNET18 = Network("ResNet-18", resnet18, images, max_regions=2)
RESNET50 = Network("ResNet-50", resnet50, images, max_regions=2)
MOBILENET_V2 = Network("MobileNetV2", mobilenet_v2, images)
CREPE = Network("CREPE tiny", crepe.load, tones)
NETWORKS = (RESNET18, MOBILENET_V2, CREPE)
BY_NAME = {
    network.name.lower().replace(" ", "-"): network for network in (*NETWORKS, RESNET50)
}  # all that tools know, more than the demo shows
