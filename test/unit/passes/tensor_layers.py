"""Layers of image networks, channels first, appended to a program. Values are (name, shape)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

from tensor_text import Program, Shape, affine, loops, tensor_type

SUM = "%s = arith.addf %i0, %i1 : f32\nlinalg.yield %s : f32"
ACCUMULATE = "%s = arith.addf %i0, %o : f32\nlinalg.yield %s : f32"
RELU = (
    "%c = arith.cmpf ugt, %i0, %zero : f32\n"
    "%s = arith.select %c, %i0, %zero : f32\nlinalg.yield %s : f32"
)


def relu(p: Program, x):
    return p.elementwise([x], [], RELU)


def bias(p: Program, x):
    """A per-channel sum, through 1xCx1x1."""
    channels, rank = x[1][1], len(x[1])
    b = p.argument((channels,), "parameter")
    wide = p.expanded(b, [list(range(rank))], (1, channels, *[1] * (rank - 2)))
    channel = ", ".join("d1" if d == 1 else "0" for d in range(rank))
    return p.elementwise([x, wide], [affine(rank, channel)], SUM)


def pad(p: Program, x, low: Sequence[int], high: Sequence[int], scalar: str = "%zero"):
    shape = tuple(a + b + c for a, b, c in zip(low, x[1], high, strict=True))
    indices = ", ".join(f"%p{d}: index" for d in range(len(shape)))
    return p.emit(
        f"tensor.pad {x[0]} low{list(low)} high{list(high)} {{\n^bb0({indices}):\n"
        f"tensor.yield {scalar} : f32\n}} : {tensor_type(x[1])} to {tensor_type(shape)}",
        shape,
    )


def window_op(p: Program, name: str, inputs, channels: Shape, window, rng, fill: str):
    """A strided, dilated op over the last two dimensions of `inputs[0]`, or None."""
    image = inputs[0][1]
    strides, dilations = rng.choice([(1, 1), (2, 1), (2, 2)]), rng.choice([(1, 1), (1, 2)])
    out = [
        (extent - (w - 1) * d - 1) // s + 1
        for extent, w, s, d in zip(image[-2:], window, strides, dilations, strict=True)
    ]
    if min(out) < 1:
        return None
    pairs = {"dilations": list(dilations), "strides": list(strides)}
    attributes = ", ".join(f"{key} = dense<{pair}> : vector<2xi64>" for key, pair in pairs.items())
    shape = (image[0], *channels, *out)
    p.contractions += "conv" in name
    return p.structured(f"linalg.{name} {{{attributes}}}", inputs, p.filled(shape, fill), shape)


def convolution(p: Program, x, rng: random.Random):
    """Plain, depthwise or in two groups, mostly behind a pad."""
    n, c, _, _ = x[1]
    window = rng.choice([(1, 1), (3, 3), (2, 3)])
    if rng.random() < 0.7:
        x = pad(p, x, (0, 0, rng.randint(0, 1), 1), (0, 0, rng.randint(0, 2), 1))
    kind = rng.choice(["plain", "plain", "depthwise", "grouped"])
    if kind == "depthwise":
        w = p.argument((c, *window), "parameter")
        return window_op(p, "depthwise_conv_2d_nchw_chw", [x, w], (c,), window, rng, "%zero")
    if kind == "plain" or c % 2:
        k = rng.choice([4, 5, 16])
        w = p.argument((k, c, *window), "parameter")
        return window_op(p, "conv_2d_nchw_fchw", [x, w], (k,), window, rng, "%zero")
    k = rng.choice([1, 4])
    w = p.argument((2, k, c // 2, *window), "parameter")
    halves = p.expanded(x, [[0], [1, 2], [3], [4]], (n, 2, c // 2, *x[1][2:]))
    y = window_op(p, "conv_2d_ngchw_gfchw", [halves, w], (2, k), window, rng, "%zero")
    if y is None:
        return None
    return p.collapsed(y, [[0], [1, 2], [3], [4]], (n, 2 * k, *y[1][3:]))


def pool(p: Program, x, rng: random.Random):
    window = rng.choice([(2, 2), (3, 2)])
    name, fill = rng.choice([("pooling_nchw_max", "%lowest"), ("pooling_nchw_sum", "%zero")])
    if rng.random() < 0.5:
        x = pad(p, x, (0, 0, 1, 0), (0, 0, 1, 1), fill)
    return window_op(p, name, [x, (p.empty(window), window)], (x[1][1],), window, rng, fill)


def space_sum(p: Program, x, keep: bool):
    n, c = x[1][:2]
    shape = (n, c, 1, 1) if keep else (n, c)
    maps = [affine(4, loops(4)), affine(4, "d0, d1, 0, 0" if keep else "d0, d1")]
    kinds = ["parallel", "parallel", "reduction", "reduction"]
    return p.generic([x], maps, kinds, p.filled(shape, "%zero"), shape, ACCUMULATE)


def gate(p: Program, x):
    """x plus its sum over space, broadcast: the shape of a squeeze-excite block."""
    s = relu(p, space_sum(p, x, keep=True))
    return p.elementwise([x, s], [affine(4, "d0, d1, 0, 0")], SUM)


def add(p: Program, x, y):
    return p.elementwise([x, y], [affine(len(x[1]), loops(len(x[1])))], SUM)


def concat(p: Program, x, y):
    shape = (x[1][0], x[1][1] + y[1][1], *x[1][2:])
    types = f"({tensor_type(x[1])}, {tensor_type(y[1])}) -> {tensor_type(shape)}"
    return p.emit(f"tensor.concat dim(1) {x[0]}, {y[0]} : {types}", shape)


def slice_(p: Program, x, rng: random.Random):
    axis = rng.randrange(1, len(x[1]))
    start = rng.randrange(x[1][axis])
    offsets = [start if d == axis else 0 for d in range(len(x[1]))]
    sizes = [extent - start if d == axis else extent for d, extent in enumerate(x[1])]
    window = f"{offsets} {sizes} {[1] * len(sizes)}"
    types = f"{tensor_type(x[1])} to {tensor_type(sizes)}"
    return p.emit(f"tensor.extract_slice {x[0]}{window} : {types}", tuple(sizes))


def transpose(p: Program, x, permutation: Sequence[int]):
    shape = tuple(x[1][d] for d in permutation)
    init = f"{p.empty(shape)} : {tensor_type(shape)}"
    return p.emit(
        f"linalg.transpose ins({x[0]} : {tensor_type(x[1])}) outs({init}) "
        f"permutation = {list(permutation)}",
        shape,
    )


def flat(p: Program, x):
    """[N, C, H, W] as [N, C, H*W], bias and relu there, and back."""
    n, c, h, w = x[1]
    groups = [[0], [1], [2, 3]]
    y = relu(p, bias(p, p.collapsed(x, groups, (n, c, h * w))))
    return p.expanded(y, groups, x[1])


def linear(p: Program, x):
    """Flatten and multiply."""
    n, features = x[1][0], prod(x[1][1:])
    y = p.collapsed(x, [[0], [1, 2, 3]], (n, features))
    w = transpose(p, p.argument((6, features), "parameter"), (1, 0))
    p.contractions += 1
    return p.structured("linalg.matmul", [y, w], p.filled((n, 6), "%zero"), (n, 6))
