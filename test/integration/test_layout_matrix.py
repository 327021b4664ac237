"""Every layout of an input through every kind of op: values, strides and who shares memory."""

import copy

import pytest
import torch
from parity import assert_gradients_close, assert_same, compile_model
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

SHAPE = (2, 4, 12, 10)


def laid_out(order: tuple[int, ...]) -> torch.Tensor:
    """A tensor of SHAPE whose dimensions lie in memory in the given order."""
    packed = torch.randn([SHAPE[dim] for dim in order])
    return packed.permute([order.index(dim) for dim in range(4)])


LAYOUTS = {
    "contiguous": lambda: torch.randn(SHAPE),
    "channels_last": lambda: laid_out((0, 2, 3, 1)),
    "columns first": lambda: laid_out((0, 1, 3, 2)),
    "batch last": lambda: laid_out((1, 2, 3, 0)),
    "reversed": lambda: laid_out((3, 2, 1, 0)),
    "gaps between rows": lambda: torch.randn(2, 4, 12, 16)[..., :10],
    "every second pixel": lambda: torch.randn(2, 4, 24, 20)[:, :, ::2, 1::2],
    "every second channel": lambda: torch.randn(2, 8, 12, 10)[:, 1::2],
    "channels_last with gaps": lambda: torch.randn(2, 12, 12, 7)[:, :, 2:, 3:].permute(0, 3, 1, 2),
    "expanded batch": lambda: torch.randn(1, 4, 12, 10).expand(SHAPE),
    "expanded channels": lambda: torch.randn(2, 1, 12, 10).expand(SHAPE),
    "expanded rows and columns": lambda: torch.randn(2, 4, 1, 1).expand(SHAPE),
    "one number": lambda: torch.randn(()).expand(SHAPE),
    "overlapping windows": lambda: torch.randn(2, 4, 21).unfold(2, 10, 1),
    "offset by one": lambda: torch.randn(961)[1:].view(SHAPE),
    "offset by three, channels_last": lambda: (
        torch.randn(963)[3:].view(2, 12, 10, 4).permute(0, 3, 1, 2)
    ),
}


class Convolution(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())


class Depthwise(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(4, 4, 3, 2, groups=4, bias=False), nn.Conv2d(4, 6, 1))


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        return nn.functional.max_pool2d(self.conv(x), 2), nn.functional.avg_pool2d(x, 3, 1)


class Rows(nn.Module):
    """A matrix product over the last dimension, softmax and a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(10, 16), nn.LayerNorm(16)

    def forward(self, x):
        y = self.norm(self.linear(x))
        return y.softmax(-1), y.transpose(1, 2)


class Mixed(nn.Module):
    """Host ops and NPU ops on what comes in, and both as results."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        z = torch.sin(x) + y
        return z, self.conv(z).relu(), torch.cat([x, y], 1), (x * 2).cumsum(1), y.sum((2, 3))


class Shared(nn.Module):
    """Results that are inputs, views of inputs and of each other, repeated, or None."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        y = self.conv(x).relu()
        flat = y.flatten(2)
        return (
            x,
            y,
            None,
            x[:, 1:],
            flat,
            y,
            x.transpose(1, 2),
            flat[:, :, 0],
            x,
            y + 0,
            y.view_as(y),
        )


MODELS = [Convolution, Depthwise, Pooled, Rows, Mixed, Shared]


def sharing(results, inputs) -> list[tuple]:
    """For every tensor: the first one with its storage, its offset, and whether it is an input."""
    leaves = [leaf for leaf in pytree.tree_leaves((inputs, results)) if torch.is_tensor(leaf)]
    storages = [leaf.untyped_storage().data_ptr() for leaf in leaves]
    identities = [id(leaf) for leaf in leaves]
    return [
        (storages.index(storages[i]), leaf.storage_offset(), identities.index(identities[i]))
        for i, leaf in enumerate(leaves)
    ]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_inference(model):
    network = model().eval()
    with torch.no_grad():
        for layout, make in LAYOUTS.items():
            torch._dynamo.reset()
            x = make()
            ours, theirs = compile_model(network)(x), network(x)
            try:
                assert_same(ours, theirs)
                assert sharing(ours, x) == sharing(theirs, x)
            except AssertionError as error:
                raise AssertionError(f"{layout}: {error}") from error


@pytest.mark.parametrize("fallback", ["inductor", "eager"])
def test_host_engines(fallback):
    """Strides are those of eager, whatever runs the host parts."""
    network = Mixed().eval()
    with torch.no_grad():
        for layout in (
            "channels_last",
            "batch last",
            "every second pixel",
            "expanded rows and columns",
        ):
            torch._dynamo.reset()
            x = LAYOUTS[layout]()
            assert_same(compile_model(network, fallback=fallback)(x), network(x))


@pytest.mark.parametrize("model", [Convolution, Depthwise, Rows, Mixed], ids=lambda m: m.__name__)
def test_training(model):
    """Inputs of every layout, and gradients that arrive in another one than the result has."""
    network = model().train()
    for layout in ("channels_last", "reversed", "gaps between rows", "expanded batch"):
        torch._dynamo.reset()
        twin, x = copy.deepcopy(network), LAYOUTS[layout]()
        found = []
        for call, module in ((compile_model(network), network), (twin, twin)):
            given = x.detach().requires_grad_()
            results = pytree.tree_leaves(call(given))
            torch.manual_seed(0)
            tangents = [torch.randn(r.shape[::-1]).permute(*range(r.dim())[::-1]) for r in results]
            wanted = [given, *module.parameters()]
            found.append(torch.autograd.grad(results, wanted, tangents))
        for ours, theirs in zip(*found, strict=True):
            assert significant(ours) == significant(theirs), layout
            assert_gradients_close(ours, theirs)


def significant(tensor: torch.Tensor) -> list[int]:
    """Strides, but those of dimensions of 1, which say nothing."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size != 1]


def assert_as_promised(model, x: torch.Tensor) -> None:
    """Values of eager. In dimensions of 1 kernels do not keep to the strides of fake tensors; ours
    are those of one or the other (views are made by PyTorch)."""
    with torch.no_grad():
        ours, theirs = compile_model(model)(x), model(x)
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            promised = model(mode.from_tensor(x))
    for mine, other, fake in zip(ours, theirs, promised, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
        assert significant(mine) == significant(other)
        assert mine.stride() in (fake.stride(), other.stride())


UNITS = [(1, 4, 12, 10), (2, 4, 1, 10), (2, 4, 12, 1), (1, 4, 1, 1), (2, 4, 1, 1)]


@pytest.mark.parametrize("shape", UNITS, ids=str)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_dimensions_of_one(shape, memory_format):
    conv = nn.Conv2d(4, 3, 3, padding=1).eval()

    def model(x):
        y = conv(x).relu()
        return y, y + x[:, :3], y.flatten(1), torch.sin(y), y.sum(1)

    assert_as_promised(model, torch.randn(shape).to(memory_format=memory_format))


@pytest.mark.parametrize("shape", [(0, 4, 12, 10), (2, 4, 0, 10), (2, 0, 12, 10), (0, 0, 0, 0)])
def test_dimensions_of_none(shape):
    """A batch of none through a convolution; sums of nothing and what is made of them."""
    conv = nn.Conv2d(4, 3, 3, padding=1).eval()

    def model(x):
        y = conv(x) if x.shape[1:] == (4, 12, 10) else x * 2
        return y.relu(), y.sum((2, 3)), torch.cat([y, y], 1).flatten(2), torch.sin(x).mT, y.sum()

    for memory_format in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(shape).to(memory_format=memory_format)
        with torch.no_grad():
            assert_same(compile_model(model)(x), model(x))


STRIDES = [
    ((1, 4, 12, 10), (7, 120, 10, 1)),
    ((1, 4, 12, 10), (0, 120, 10, 1)),
    ((2, 4, 1, 10), (40, 10, 999, 1)),
    ((2, 4, 10, 1), (40, 10, 1, 3)),
    ((1, 4, 1, 1), (1, 1, 1, 1)),
    ((1, 4, 1, 1), (4, 1, 4, 4)),
]


@pytest.mark.parametrize(("shape", "strides"), STRIDES)
def test_unit_dimensions_with_any_stride(shape, strides):
    conv = nn.Conv2d(4, 3, 3, padding=1).eval()

    def model(x):
        return conv(x).relu(), x * 2, torch.sin(x), x.flatten(1)

    assert_as_promised(model, torch.randn(5000).as_strided(shape, strides))


def test_tensors_without_dimensions():
    conv = nn.Conv2d(4, 3, 1).eval()

    def model(x, scale, shift):
        y = conv(x) * scale + shift
        return y, y.sum(), y.mean() * scale, scale + shift, scale, scale.view(1), torch.sin(shift)

    given = torch.randn(SHAPE), torch.tensor(2.5), torch.randn(3)[1]
    with torch.no_grad():
        ours, theirs = compile_model(model)(*given), model(*given)
    assert_same(ours, theirs)
    assert sharing(ours, given) == sharing(theirs, given)


@pytest.mark.parametrize("offset", [1, 2, 3, 5, 7])
def test_storage_that_no_vector_is_aligned_to(offset):
    """Inputs and weights at any address of a float."""
    images, weights = torch.randn(960 + offset), torch.randn(216 + offset)

    def model(x, weight):
        return nn.functional.conv2d(x, weight, padding=1).relu() + x.sum()

    x, weight = images[offset:].view(SHAPE), weights[offset:].view(6, 4, 3, 3)
    with torch.no_grad():
        assert_same(compile_model(model)(x, weight), model(x, weight))
