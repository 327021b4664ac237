"""Random kernels of every kind. The same random numbers give the same kernel."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from staged import kernel_text as k
from staged.kernel_text import Kernel

from random_programs import vector_text as v

Builder = Callable[..., Kernel]  # takes schedule=


@dataclass(frozen=True)
class Sizes:
    """What extents, channel counts and blocks of output channels are drawn from."""

    extents: tuple[int, ...]
    channels: tuple[int, ...]
    blocks: tuple[int, ...] = (1, 3, 4, 8)


SMALL = Sizes((1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13), (1, 2, 3, 4, 5, 8, 16))
MEDIUM = Sizes((11, 12, 13, 14, 16, 20), (8, 12, 16, 24))
LARGE = Sizes((14, 17, 23, 28, 32), (16, 24, 48))
FEW = Sizes((1, 2, 2, 3, 4, 5), (1, 2))  # of many dimensions
WIDE = replace(SMALL, blocks=(*SMALL.blocks, 1100))  # more than accumulators of 4 KiB hold


def random_kernel(rng: random.Random, sizes: Sizes = SMALL) -> Builder:
    """A kernel that still takes its schedule."""
    (make,) = rng.choices(list(KINDS), list(KINDS.values()))
    builder = make(rng, sizes)
    return _transposed(builder, rng) if make != _transpose and rng.random() < 0.4 else builder


def _transposed(builder: Builder, rng: random.Random) -> Builder:
    """The same kernel, with some of its operands and its result in other orders in dram."""
    kernel = builder()

    def order(shape: Sequence[int]) -> list[int]:
        return rng.sample(range(len(shape)), len(shape))

    shapes = enumerate(kernel.inputs)
    loads = {i: order(shape) for i, shape in shapes if len(shape) > 1 and rng.random() < 0.5}
    store = order(kernel.output) if len(kernel.output) > 1 and rng.random() < 0.6 else None
    return partial(k.transposed, builder, loads, store)


def _window(rng: random.Random, image: tuple[int, int]) -> k.Window:
    def pair(*values):
        return rng.choice(values), rng.choice(values)

    while True:
        pads = (pair(0, 1, 1, 2, 4), pair(0, 1, 1, 2, 4)) if rng.random() < 0.7 else ((0, 0),) * 2
        window = k.Window(pair(1, 2, 3, 3, 4), pair(1, 1, 2, 3), pair(1, 1, 2, 3), *pads)
        if min(window.output(image)) >= 1:
            return window


def _image(rng: random.Random, sizes: Sizes) -> tuple[int, int, int]:
    """Batch, rows, columns."""
    return rng.choice((1, 1, 2, 3)), rng.choice(sizes.extents), rng.choice(sizes.extents)


def _shape(rng: random.Random, rank: int, sizes: Sizes) -> list[int]:
    extents = (sizes if rank < 4 else FEW).extents
    return [rng.choice(extents) for _ in range(rank)]


def _conv2d(rng: random.Random, sizes: Sizes) -> Builder:
    image = (*_image(rng, sizes), rng.choice(sizes.channels))
    blocks, block = rng.choice((1, 2, 3, 4)), rng.choice(SMALL.blocks)
    window = _window(rng, image[1:3])
    return partial(k.conv2d, image, blocks, block, window, epilogue=rng.random() < 0.6)


def _grouped(rng: random.Random, sizes: Sizes) -> Builder:
    image = (*_image(rng, sizes), rng.choice((1, 2, 3)), rng.choice(sizes.channels))
    blocks, block = rng.choice((1, 2, 3)), rng.choice((1, 4))
    return partial(k.grouped_conv2d, image, blocks, block, _window(rng, image[1:3]))


def _depthwise(rng: random.Random, sizes: Sizes) -> Builder:
    image = (*_image(rng, sizes), rng.choice(sizes.channels))
    return partial(k.depthwise_conv2d, image, _window(rng, image[1:3]), epilogue=rng.random() < 0.6)


def _pool(rng: random.Random, sizes: Sizes) -> Builder:
    image = (*_image(rng, sizes), rng.choice(sizes.channels))
    return partial(k.pool2d, image, _window(rng, image[1:3]), rng.choice(("max", "sum")))


def _matmul(rng: random.Random, sizes: Sizes) -> Builder:
    m, c = rng.choice(sizes.extents), rng.choice((*sizes.extents, 60))
    return partial(k.matmul, m, c, rng.choice((1, 2, 3, 6)), rng.choice(sizes.blocks))


def _eltwise(rng: random.Random, sizes: Sizes) -> Builder:
    rank = rng.randint(1, 5)
    extents = _shape(rng, rank, sizes)
    operands = [v.Operand(tuple(range(rank)))]
    for _ in range(rng.randint(0, 3)):
        loops = [None if rng.random() < 0.2 else d for d in range(rank) if rng.random() < 0.7]
        if rng.random() < 0.2:
            rng.shuffle(loops)
        operands.append(v.Operand(tuple(loops)))
    ops = [rng.choice(list(v.BINARY)) for _ in operands[1:]]
    return partial(v.eltwise, extents, operands, ops)


def _square(rng: random.Random, sizes: Sizes) -> Builder:
    """One operand twice, and a bias per channel."""
    return partial(k.add_relu, _shape(rng, rng.randint(1, 3), sizes))


def _reduction(rng: random.Random, sizes: Sizes) -> Builder:
    rank = rng.randint(1, 4)
    extents = _shape(rng, rank, sizes)
    reduced = sorted(rng.sample(range(rank), rng.randint(1, rank)))
    kind, epilogue = rng.choice(list(v.REDUCTIONS)), rng.random() < 0.4
    return partial(v.reduction, extents, reduced, kind, epilogue=epilogue)


def _mean(rng: random.Random, sizes: Sizes) -> Builder:
    return partial(k.mean, (*_image(rng, sizes), rng.choice(sizes.channels)))


def _transpose(rng: random.Random, sizes: Sizes) -> Builder:
    rank = rng.randint(2, 6)
    extents = _shape(rng, rank, sizes)
    order = list(range(rank))
    rng.shuffle(order)
    return partial(k.transpose, extents, order)


KINDS = {
    _conv2d: 6,
    _grouped: 3,
    _depthwise: 3,
    _pool: 3,
    _matmul: 3,
    _eltwise: 3,
    _square: 1,
    _reduction: 3,
    _mean: 1,
    _transpose: 1,
}
