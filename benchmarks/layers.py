"""Every distinct convolution of five well-known networks, in classes that behave alike.

Plain data, without torch: shapes as the networks' papers and reference implementations have them,
padding included, for images of 224x224 (CREPE: frames of 1024 samples). The test compares them with
what the built networks compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

LONG = 32  # a kernel of one column and at least so many rows is long

CLASSES = (
    "7x7 s2",
    "3x3 s1",
    "3x3 s2",
    "1x1 s1",
    "1x1 s2",
    "depthwise s1",
    "depthwise s2",
    "long 1-D",
)


@dataclass(frozen=True)
class Convolution:
    """A convolution of images of `size` (height, width). padding: top, bottom, left, right."""

    inputs: int
    outputs: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1

    @property
    def output_size(self) -> tuple[int, int]:
        top, bottom, left, right = self.padding
        height = (self.size[0] + top + bottom - self.kernel[0]) // self.stride[0] + 1
        width = (self.size[1] + left + right - self.kernel[1]) // self.stride[1] + 1
        return height, width

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one image, those with padding included."""
        height, width = self.output_size
        taps = self.kernel[0] * self.kernel[1] * (self.inputs // self.groups)
        return height * width * self.outputs * taps

    @property
    def kind(self) -> str:
        """The class, one of CLASSES."""
        rows, columns = self.kernel
        if columns == 1 and rows >= LONG:
            return "long 1-D"
        if self.groups > 1:
            return f"depthwise s{self.stride[0]}"
        return f"{rows}x{columns} s{self.stride[0]}"

    @property
    def name(self) -> str:
        kernel = "x".join(map(str, self.kernel))
        size = "x".join(map(str, self.size))
        depthwise = "dw " if self.groups > 1 else ""
        channels = f"{self.inputs}" if self.groups > 1 else f"{self.inputs} to {self.outputs}"
        return f"{depthwise}{kernel} s{self.stride[0]} {channels} at {size}"


def square(inputs: int, outputs: int, size: int, kernel: int, stride: int = 1) -> Convolution:
    """A square kernel on a square image, padded so that stride 1 keeps the size."""
    return Convolution(
        inputs, outputs, (size, size), (kernel, kernel), (stride, stride), (kernel // 2,) * 4
    )


def depthwise(channels: int, size: int, stride: int) -> Convolution:
    return Convolution(
        channels, channels, (size, size), (3, 3), (stride, stride), (1, 1, 1, 1), channels
    )


def resnet50() -> Iterator[Convolution]:
    """Bottlenecks whose 3x3 convolution has the stride."""
    yield square(3, 64, 224, 7, 2)
    inputs, size = 64, 56
    for index, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            stride = 2 if index and not block else 1
            if not block:
                yield square(inputs, 4 * width, size, 1, stride)
            yield square(inputs, width, size, 1)
            yield square(width, width, size, 3, stride)
            size //= stride
            yield square(width, 4 * width, size, 1)
            inputs = 4 * width


def mobilenet_v2() -> Iterator[Convolution]:
    yield square(3, 32, 224, 3, 2)
    yield depthwise(32, 112, 1)
    yield square(32, 16, 112, 1)
    inputs, size = 16, 112
    stages = ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))
    for outputs, blocks, first_stride in stages:
        for block in range(blocks):
            stride = 1 if block else first_stride
            yield square(inputs, 6 * inputs, size, 1)
            yield depthwise(6 * inputs, size, stride)
            size //= stride
            yield square(6 * inputs, outputs, size, 1)
            inputs = outputs
    yield square(320, 1280, size, 1)


def vgg16() -> Iterator[Convolution]:
    inputs, size = 3, 224
    for outputs, layers in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(layers):
            yield square(inputs, outputs, size, 3)
            inputs = outputs
        size //= 2


def squeezenet() -> Iterator[Convolution]:
    """Version 1.1."""
    yield Convolution(3, 64, (224, 224), (3, 3), (2, 2))
    inputs = 64
    for size, squeezes in ((55, (16, 16)), (27, (32, 32)), (13, (48, 48, 64, 64))):
        for squeezed in squeezes:
            yield square(inputs, squeezed, size, 1)
            yield square(squeezed, 4 * squeezed, size, 1)
            yield square(squeezed, 4 * squeezed, size, 3)
            inputs = 8 * squeezed
    yield square(512, 1000, 13, 1)


def crepe() -> Iterator[Convolution]:
    """Tiny: time is the height of images of width 1, halved by a pool after every layer."""
    yield Convolution(1, 128, (1024, 1), (512, 1), (4, 1), (254, 254, 0, 0))
    inputs, size = 128, 128
    for outputs in (16, 16, 16, 32, 64):
        yield Convolution(inputs, outputs, (size, 1), (64, 1), padding=(31, 32, 0, 0))
        inputs, size = outputs, size // 2


NETWORKS = {
    "ResNet-50": resnet50,
    "MobileNetV2": mobilenet_v2,
    "VGG-16": vgg16,
    "SqueezeNet 1.1": squeezenet,
    "CREPE tiny": crepe,
}


def distinct() -> tuple[Convolution, ...]:
    """All of them once, by class and then in the order in which they appear."""
    seen = dict.fromkeys(layer for network in NETWORKS.values() for layer in network())
    return tuple(sorted(seen, key=lambda layer: CLASSES.index(layer.kind)))
