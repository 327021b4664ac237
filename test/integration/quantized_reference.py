"""The integer semantics of quantised networks, evaluated without the compiler, and models to try.

`reference` runs a model call by call. Where a convolution, a matrix product or an average reads
dequantised tensors, the products of integers are added up in float64, which is exact; the sum is
rounded to float32 and multiplied by float32(scale of the image * scale of the weights). Everything
else is what eager computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # registers the ops
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten
quantized = torch.ops.quantized_decomposed
RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


def reference(model: Callable, *inputs: Tensor) -> Tensor:
    return _Reference(make_fx(model)(*inputs)).run(*inputs)


class _Reference(fx.Interpreter):
    """Keeps beside every dequantised tensor its integers less the zero point, and its scales."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self._origins: dict[fx.Node, tuple[Tensor, Tensor]] = {}

    def run_node(self, node: fx.Node):
        value = super().run_node(node)
        origin = self._origin(node)
        if origin is not None:
            self._origins[node] = origin
        exact = self._exact(node)
        return value if exact is None else exact

    def _origin(self, node: fx.Node) -> tuple[Tensor, Tensor] | None:
        args = [self.env.get(a) if isinstance(a, fx.Node) else a for a in node.args]
        if node.target == quantized.dequantize_per_tensor.default:
            return args[0].double() - args[2], torch.full([1] * args[0].dim(), args[1])
        if node.target == quantized.dequantize_per_channel.default:
            shape = [-1 if d == args[3] else 1 for d in range(args[0].dim())]
            return args[0].double() - args[2].view(shape), args[1].view(shape)
        if node.target in (aten.t.default, aten.permute.default) and node.args[0] in self._origins:
            return tuple(node.target(t, *args[1:]) for t in self._origins[node.args[0]])
        moves = (aten.view.default, aten.expand.default, aten.squeeze.dims, aten.unsqueeze.default)
        if node.target in moves and node.args[0] in self._origins:
            integers, scale = self._origins[node.args[0]]
            if scale.numel() == 1:
                moved = node.target(integers, *args[1:])
                return moved, scale.reshape([1] * moved.dim())
        return None

    def _exact(self, node: fx.Node) -> Tensor | None:
        args = [self.env.get(a) if isinstance(a, fx.Node) else a for a in node.args]
        found = [self._origins.get(a) if isinstance(a, fx.Node) else None for a in node.args]
        if node.target == aten.convolution.default and found[0] and found[1] and not args[6]:
            (x, scale), (weight, scales) = found[0], found[1]
            sums = aten.convolution(x, weight, None, *args[3:])
            out = sums.float() * (scales * scale.flatten()).view(1, -1, *[1] * (sums.dim() - 2))
            return out if args[2] is None else out + args[2].view(1, -1, *[1] * (sums.dim() - 2))
        if node.target == aten.mm.default and found[0] and found[1]:
            return self._product(*found)
        if node.target == aten.addmm.default and found[1] and found[2]:
            return self._product(found[1], found[2]) + args[0]
        if node.target == aten.mean.dim and found[0]:
            count = math.prod(args[0].shape[d] for d in args[1])
            return self._average(found[0], lambda x: x.sum(*args[1:]), count)
        if node.target == aten._adaptive_avg_pool2d.default and found[0]:
            sizes = list(zip(args[0].shape[-2:], args[1], strict=True))
            if any(n % m for n, m in sizes):
                return None
            window = [n // m for n, m in sizes]
            count = math.prod(window)
            return self._average(
                found[0], lambda x: aten.avg_pool2d(x, window, divisor_override=1), count
            )
        if node.target == aten.avg_pool2d.default and found[0] and len(args) <= 4:
            return self._average(
                found[0], lambda x: aten.avg_pool2d(x, *args[1:], divisor_override=1),
                math.prod(args[1]),
            )  # fmt: skip
        return None

    def _product(self, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> Tensor:
        return (left[0] @ right[0]).float() * (right[1] * left[1])

    def _average(self, origin: tuple[Tensor, Tensor], add: Callable, count: int) -> Tensor:
        integers, scale = origin
        return add(integers).round().float() * np.float32(scale.double().item() / count).item()


def quantise(x: Tensor, scale: float, zero: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    return quantized.quantize_per_tensor(x, scale, zero, *RANGES[dtype], dtype)


def dequantise(x: Tensor, scale: float, zero: int) -> Tensor:
    return quantized.dequantize_per_tensor(x, scale, zero, *RANGES[x.dtype], x.dtype)


def through(x: Tensor, scale: float, zero: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    """A pair of quantisation and dequantisation, as converting leaves them around every op."""
    return dequantise(quantise(x, scale, zero, dtype), scale, zero)


class Weights(torch.nn.Module):
    """Weights as convert_pt2e leaves them: integers, scales and zero points per output channel, or
    one scale for all."""

    def __init__(self, *shape: int, per_channel: bool = True, zero: int = 0) -> None:
        super().__init__()
        numbers = torch.Generator().manual_seed(math.prod(shape))
        self.register_buffer(
            "integers", torch.randint(-128, 128, shape, dtype=torch.int8, generator=numbers)
        )
        self.register_buffer("scales", torch.rand(shape[0], generator=numbers) * 0.01 + 1e-3)
        self.register_buffer("zeros", torch.full(shape[:1], zero, dtype=torch.int64))
        self.bias = torch.nn.Parameter(torch.randn(shape[0], generator=numbers))
        self.per_channel = per_channel

    def forward(self) -> Tensor:
        if not self.per_channel:
            return dequantise(self.integers, 0.0123, 0)
        return quantized.dequantize_per_channel(
            self.integers, self.scales, self.zeros, 0, -128, 127, torch.int8
        )
