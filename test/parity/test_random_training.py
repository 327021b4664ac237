"""Training steps of random small networks: results and gradients against eager, in the type of the
network, with float64 as what both are measured by."""

import copy
import random
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

CHANNELS = 8
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
BATCH_NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
INSTANCE_NORMS = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
SIZES = {1: (24,), 2: (12, 10), 3: (5, 6, 8)}
ACTIVATIONS = (
    F.relu, F.relu6, F.leaky_relu, F.silu, F.gelu, F.hardswish, F.hardsigmoid, F.elu, F.mish,
    F.softplus, F.logsigmoid, F.hardshrink, F.softsign, F.tanhshrink, torch.tanh, torch.sigmoid,
    lambda x: x.clamp(-0.7, 0.9), lambda x: torch.where(x > 0.1, x, 0.2 * x),
    lambda x: x.masked_fill(x < -0.5, 0.25), lambda x: torch.maximum(x, 0.3 * x.square()),
    lambda x: F.glu(torch.cat([x, x * 0.5], 1), 1), lambda x: x * (x > 0), lambda x: x.abs(),
)  # fmt: skip
LOSSES = (
    lambda x: F.mse_loss(x, torch.zeros_like(x)),
    lambda x: F.smooth_l1_loss(x, torch.ones_like(x), beta=0.5),
    lambda x: F.huber_loss(x, torch.ones_like(x), reduction="sum", delta=0.7),
    lambda x: F.l1_loss(x, torch.full_like(x, 0.1)),
    lambda x: F.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.3)),
    lambda x: F.binary_cross_entropy(x.float().sigmoid(), torch.full_like(x, 0.3).float()),
    lambda x: F.cross_entropy(x.flatten(2).mean(2), torch.arange(len(x))),
    lambda x: F.cross_entropy(x, torch.arange(x[:, 0].numel()).reshape(x[:, 0].shape) % CHANNELS),
    lambda x: x.var() + x.std(1).sum(),
    lambda x: x.amax((1, 2)).sum() + F.normalize(x.flatten(1), dim=1).square().mean(),
)


class RandomNetwork(nn.Module):
    """Two to four blocks of convolution, normalization, activation, and pool or skip; a loss."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        chosen = random.Random(seed)
        self.rank = chosen.choice((1, 2, 2, 3))
        self.stem = CONVOLUTIONS[self.rank](3, CHANNELS, 3, padding=1)
        self.blocks = nn.ModuleList()
        self.steps = []
        for _ in range(chosen.choice((1, 2, 3))):
            self.blocks.append(self._layer(chosen))
            self.blocks.append(self._norm(chosen))
            skips, pool = chosen.random() < 0.4, chosen.choice(self._pools())
            self.steps.append((chosen.choice(ACTIVATIONS), skips, pool))
        self.loss = chosen.choice(LOSSES)

    def _layer(self, chosen: random.Random) -> nn.Module:
        groups, bias = chosen.choice((1, 1, 2, CHANNELS)), chosen.random() < 0.7
        common = {"groups": groups, "bias": bias, "dilation": chosen.choice((1, 1, 2))}
        if chosen.random() < 0.25:
            return TRANSPOSED[self.rank](
                CHANNELS, CHANNELS, 3, padding=common["dilation"], **common
            )
        size = chosen.choice((1, 3))
        padding = common["dilation"] * (size // 2)
        return CONVOLUTIONS[self.rank](CHANNELS, CHANNELS, size, padding=padding, **common)

    def _norm(self, chosen: random.Random) -> nn.Module:
        batch, instance = BATCH_NORMS[self.rank], INSTANCE_NORMS[self.rank]
        norms = [batch(CHANNELS), batch(CHANNELS), batch(CHANNELS, affine=False)]
        norms += [batch(CHANNELS).eval(), instance(CHANNELS, affine=True)]
        return chosen.choice([*norms, nn.GroupNorm(2, CHANNELS), nn.Identity()])

    def _pools(self) -> list:
        rank = self.rank
        pooled = [
            getattr(F, f"max_pool{rank}d"),
            getattr(F, f"avg_pool{rank}d"),
            getattr(F, f"adaptive_avg_pool{rank}d"),
            getattr(F, f"adaptive_max_pool{rank}d"),
        ]
        return [
            lambda x: x,
            lambda x: x,
            lambda x: pooled[0](x, 3, 2, 1),
            lambda x: pooled[0](x, 2, ceil_mode=True),
            lambda x: pooled[1](x, 2, ceil_mode=True),
            lambda x: pooled[2](x, 3),
            lambda x: pooled[3](x, [n // 2 if n % 2 == 0 else n for n in x.shape[2:]]),
        ]

    def forward(self, x):
        x = self.stem(x)
        for (activation, skips, pool), layer, norm in zip(
            self.steps, self.blocks[::2], self.blocks[1::2], strict=True
        ):
            y = activation(norm(layer(x)))
            y = y + x if skips else y
            x = pool(y) if min(y.shape[2:]) > 2 else y
        return self.loss(x), x


def step(call, model, x, autocast):
    x = x.detach().clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss, out = call(x)
    (loss.float() + out.float().sin().sum()).backward()
    gradients = [p.grad for p in model.parameters()]
    assert all(gradient is not None for gradient in gradients)
    return [loss.detach(), out.detach(), x.grad, *gradients]


def check(seed: int) -> None:
    kind = ("float32", "float32", "bfloat16", "autocast")[seed % 4]
    torch.manual_seed(seed)
    model = RandomNetwork(seed)
    x = torch.randn(2, 3, *SIZES[model.rank])
    exact = copy.deepcopy(model).double()
    if kind == "bfloat16":
        model, x = model.bfloat16(), x.bfloat16()
        exact = copy.deepcopy(model).double()
    theirs = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=RuntimeWarning)
        call = torch.compile(model, backend="mlir_npu", options={"min_region_macs": 0})
        ours = step(call, model, x, kind == "autocast")
    expected = step(theirs, theirs, x, kind == "autocast")
    true = step(exact, exact, x.double(), False)
    epsilon = 2e-6 if kind == "float32" else 8e-3
    for number, (one, other, right) in enumerate(zip(ours, expected, true, strict=True)):
        assert one.dtype == other.dtype and one.stride() == other.stride(), number
        size = right.norm() + max(r.norm() for r in true[1:3]) * 1e-2
        distance = (one.double() - right).norm()
        allowed = 3 * (other.double() - right).norm() + 50 * epsilon * size
        assert distance <= allowed, (number, distance, allowed, kind)


QUICK = (0, 1, 2)


@pytest.mark.parametrize(
    "seed",
    [seed if seed in QUICK else pytest.param(seed, marks=pytest.mark.slow) for seed in range(64)],
)
def test_a_step_of_a_random_network(seed):
    check(seed)
