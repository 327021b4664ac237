"""Modules and inputs of the cases, by name; random weights are seeded."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from mlir_npu.benchmarks.layers import Convolution
from mlir_npu.scripts.networks import small, zoo
from mlir_npu.scripts.networks.comparison import SUMMING

VGG_STAGES = {
    11: (1, 1, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
}
UNET_IMAGE = 128
UNET_WIDTH = 32


class Layer(nn.Module):
    """A convolution with a bias, then a ReLU; sides may be padded differently."""

    def __init__(self, shape: Convolution) -> None:
        super().__init__()
        self.shape = shape
        top, bottom, left, right = shape.padding
        even = top == bottom and left == right
        self.sides = None if even else (left, right, top, bottom)
        self.conv = nn.Conv2d(
            shape.inputs,
            shape.outputs,
            shape.kernel,
            shape.stride,
            padding=(top, left) if even else 0,
            groups=shape.groups,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.sides:
            x = nn.functional.pad(x, self.sides)
        return self.conv(x).relu()


def layer(shape: Convolution) -> Layer:
    torch.manual_seed(0)
    return Layer(shape).eval()


def vgg(layers: int) -> nn.Module:
    """VGG with ReLU and without batch norm, 1000 classes."""
    torch.manual_seed(layers)
    features: list[nn.Module] = []
    inputs = 3
    for outputs, count in zip((64, 128, 256, 512, 512), VGG_STAGES[layers], strict=True):
        for _ in range(count):
            features += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
            inputs = outputs
        features.append(nn.MaxPool2d(2))
    classifier = [nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Dropout()]
    classifier += [nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 1000)]
    return nn.Sequential(*features, *classifier).eval()


def squeezenet() -> nn.Module:
    """SqueezeNet 1.1, 1000 classes."""
    torch.manual_seed(11)
    fire = small.Fire

    def pool() -> nn.Module:
        return nn.MaxPool2d(3, stride=2, ceil_mode=True)

    return nn.Sequential(
        nn.Conv2d(3, 64, 3, stride=2), nn.ReLU(), pool(),
        fire(64, 16, 64), fire(128, 16, 64), pool(),
        fire(128, 32, 128), fire(256, 32, 128), pool(),
        fire(256, 48, 192), fire(384, 48, 192), fire(384, 64, 256), fire(512, 64, 256),
        nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ).eval()  # fmt: skip


def unet() -> nn.Module:
    torch.manual_seed(5)
    return small.UNet(UNET_WIDTH).eval()


def crepe() -> nn.Module:
    """CREPE tiny with random weights: its speed does not depend on them."""
    from mlir_npu.scripts.networks.crepe import Crepe

    torch.manual_seed(6)
    return Crepe().eval()


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ResNet-18": zoo.resnet18,
    "ResNet-50": zoo.resnet50,
    "MobileNetV2": zoo.mobilenet_v2,
    "VGG-11": lambda: vgg(11),
    "VGG-16": lambda: vgg(16),
    "SqueezeNet 1.1": squeezenet,
    "CREPE tiny": crepe,
    "U-Net": unet,
}


def input_shape(network: str, batch: int, image: int | None = None) -> tuple[int, ...]:
    if network == "CREPE tiny":
        return batch, 1024
    size = image or (UNET_IMAGE if network == "U-Net" else zoo.IMAGE)
    return batch, 3, size, size


def random_input(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


def count_macs(model: nn.Module, x: torch.Tensor) -> int:
    """Multiply-accumulates of the convolutions and linear layers in one call."""
    macs = 0

    def add(module: nn.Module, _: tuple, result: torch.Tensor) -> None:
        nonlocal macs
        macs += result.numel() * module.weight[0].numel()  # products of one value of the result

    summing = [m for m in model.modules() if isinstance(m, SUMMING)]
    hooks = [module.register_forward_hook(add) for module in summing]
    model(x)
    for hook in hooks:
        hook.remove()
    return macs


class _PaddingProducts(TorchDispatchMode):
    """Counts the products of convolutions with their own padding, and with that of `pad` before."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._data = WeakTensorKeyDictionary()  # of padded tensors: 1 where it is data, else 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.constant_pad_nd.default:
            self._data[result] = func(torch.ones_like(args[0]), args[1], 0.0)
        if func is torch.ops.aten.convolution.default and not args[6]:
            x, weight, _, *geometry = args
            data = self._data.get(x)
            data = torch.ones_like(x) if data is None else data
            inner = func(data, torch.ones_like(weight), None, *geometry)
            whole = result.numel() * weight[0].numel()
            self.count += whole - int(inner.sum(dtype=torch.float64))
        return result


def count_least_macs(model: nn.Module, x: torch.Tensor) -> int:
    """Those of `count_macs` whose factor is no padding: the least that an engine has to do."""
    padding = _PaddingProducts()
    with torch.no_grad(), padding:
        model(x)
    return count_macs(model, x) - padding.count
