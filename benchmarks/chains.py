"""What networks do between their matrix products: elementwise chains, reductions, normalisations.

Each chain is a module of one input, with what else it needs as buffers. Reductions by rows are over
the last dimension, those by columns over the first, those in the middle over one of three.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

GROUPS = 8
# How much farther from the exact result than eager a result may be, and units of its own rounding.
ALLOWANCE, ULPS = 4.0, 16.0


@dataclass(frozen=True)
class Kind:
    """compute(x, y, weight, bias): y is like x, weight and bias have one number per column, or per
    channel of images. group: the row of the summary."""

    group: str
    compute: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    dtype: torch.dtype = torch.float32
    images: bool = False


KINDS: dict[str, Kind] = {
    "gelu(x) * y + b": Kind("elementwise", lambda x, y, w, b: F.gelu(x) * y + b),
    "tanh(x + y)": Kind("elementwise", lambda x, y, w, b: torch.tanh(x + y)),
    "x * sigmoid(y) + x": Kind("elementwise", lambda x, y, w, b: x * torch.sigmoid(y) + x),
    "where(x > y and x < 1, x, y)": Kind(
        "masks", lambda x, y, w, b: torch.where((x > y) & (x < 1), x, y)
    ),
    "(x > y) or (x < 0)": Kind("masks", lambda x, y, w, b: (x > y) | (x < 0)),
    "x * w + b": Kind("elementwise", lambda x, y, w, b: x * w + b),
    "exp(x) - relu(y)": Kind("elementwise", lambda x, y, w, b: x.exp() - y.relu()),
    "x + column": Kind("elementwise", lambda x, y, w, b: (x + y[:, :1]) * 2),
    "x + y transposed": Kind(
        "layouts", lambda x, y, w, b: (x + y.view(y.shape[1], y.shape[0]).t()) * 2
    ),
    "even columns * odd columns": Kind("layouts", lambda x, y, w, b: x[:, ::2] * y[:, 1::2] + 1),
    "silu(left) * right": Kind(
        "layouts", lambda x, y, w, b: F.silu(x.chunk(2, 1)[0]) * x.chunk(2, 1)[1]
    ),
    "x to bf16": Kind("types", lambda x, y, w, b: (x + y).bfloat16()),
    "bf16 to f32": Kind("types", lambda x, y, w, b: x.float() * 2, torch.bfloat16),
    "x * 3 + y, int32": Kind("types", lambda x, y, w, b: x * 3 + y, torch.int32),
    "clamp(x) & y, int64": Kind("types", lambda x, y, w, b: x.clamp(-5, 50) & y, torch.int64),
    "sum of rows, int64": Kind("types", lambda x, y, w, b: x.sum(-1), torch.int64),
    "tanh(x) * y, f16": Kind("bf16", lambda x, y, w, b: x.tanh() * y, torch.float16),
    "layer_norm, bf16": Kind(
        "bf16", lambda x, y, w, b: F.layer_norm(x, x.shape[-1:], w, b), torch.bfloat16
    ),
    "sum of rows, bf16": Kind("bf16", lambda x, y, w, b: (x + y).sum(-1), torch.bfloat16),
    "silu(x) * y, bf16": Kind("bf16", lambda x, y, w, b: F.silu(x) * y, torch.bfloat16),
    "softmax rows, bf16": Kind("bf16", lambda x, y, w, b: x.softmax(-1), torch.bfloat16),
    "softmax rows": Kind("softmax", lambda x, y, w, b: x.softmax(-1)),
    "softmax columns": Kind("softmax", lambda x, y, w, b: x.softmax(0)),
    "log_softmax rows": Kind("softmax", lambda x, y, w, b: x.log_softmax(-1)),
    "log_softmax columns": Kind("softmax", lambda x, y, w, b: x.log_softmax(0)),
    "logsumexp of rows": Kind("softmax", lambda x, y, w, b: x.logsumexp(-1)),
    "rms_norm": Kind("norm", lambda x, y, w, b: F.rms_norm(x, x.shape[-1:], w, 1e-5)),
    "batch_norm, training": Kind(
        "norm",
        lambda x, y, w, b: F.batch_norm(x, None, None, w, b, training=True).relu(),
        images=True,
    ),
    "layer_norm": Kind("norm", lambda x, y, w, b: F.layer_norm(x, x.shape[-1:], w, b)),
    "layer_norm(x + y)": Kind("norm", lambda x, y, w, b: F.layer_norm(x + y, x.shape[-1:], w, b)),
    "group_norm, relu": Kind(
        "norm", lambda x, y, w, b: F.group_norm(x, GROUPS, w, b).relu(), images=True
    ),
    "sum of rows": Kind("reduction", lambda x, y, w, b: x.sum(-1)),
    "sum of all": Kind("reduction", lambda x, y, w, b: x.sum()),
    "largest of all": Kind("reduction", lambda x, y, w, b: x.abs().amax()),
    "largest of rows": Kind("reduction", lambda x, y, w, b: x.amax(-1)),
    "least of columns": Kind("reduction", lambda x, y, w, b: x.amin(0)),
    "sum in the middle": Kind("reduction", lambda x, y, w, b: x.view(4, -1, x.shape[1]).sum(1)),
    "mean of pixels": Kind("reduction", lambda x, y, w, b: x.mean((2, 3)), images=True),
    "deviation of columns": Kind("reduction", lambda x, y, w, b: x.std(0)),
    "sum of columns": Kind("reduction", lambda x, y, w, b: x.sum(0)),
    "mean of (x - y) ** 2": Kind("reduction", lambda x, y, w, b: ((x - y) ** 2).mean()),
    "variance of rows": Kind("reduction", lambda x, y, w, b: x.var(-1)),
}
# rows and columns, 1e3 to 1e7 elements
SIZES = ((8, 128), (128, 768), (224, 1000), (1024, 1024), (4096, 2560))
QUICK_SIZES = SIZES[1:2]
LARGEST_INTEGER = 100


class Chain(nn.Module):
    """The chain `name` for inputs of `shape`."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__()
        kind = KINDS[name]
        random = torch.Generator().manual_seed(3)
        channels = shape[1] if kind.images else shape[-1]
        self.name, self.dtype = name, kind.dtype
        for buffer, size in (("y", shape), ("weight", (channels,)), ("bias", (channels,))):
            self.register_buffer(buffer, _random(size, kind.dtype, random))

    def forward(self, x: Tensor) -> Tensor:
        return KINDS[self.name].compute(x, self.y, self.weight, self.bias)


def input_of(model: Chain, shape: tuple[int, ...]) -> Tensor:
    return _random(shape, model.dtype, torch.Generator().manual_seed(4))


def _random(shape: tuple[int, ...], dtype: torch.dtype, random: torch.Generator) -> Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, generator=random).to(dtype)
    low, high = -LARGEST_INTEGER, LARGEST_INTEGER
    return torch.randint(low, high, shape, generator=random, dtype=dtype)


def shape_of(name: str, rows: int, columns: int) -> tuple[int, ...]:
    """Images have one channel per row."""
    return (1, rows, columns // 8, 8) if KINDS[name].images else (rows, columns)


def accuracy(model: Chain, x: Tensor, expected: Tensor, actual: Tensor) -> dict:
    """How far a result is from the exact one, and how far it may be: f64 is taken for exact."""
    if not expected.is_floating_point():
        wrong = (expected != actual).sum().item()
        return {"difference": float(wrong), "tolerance": 0.0, "notes": {}}
    exact = copy.deepcopy(model).double()(x.double())
    scale = torch.finfo(expected.dtype).eps * exact.abs().max().item()
    own = (expected.double() - exact).abs().max().item()
    return {
        "difference": (actual.double() - exact).abs().max().item(),
        "tolerance": ALLOWANCE * own + ULPS * scale,
        "notes": {},
    }
