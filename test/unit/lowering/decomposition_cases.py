"""Calls of every op that has a support rule, in the variants that take different paths to linalg.

NAME: (overload, positional arguments, keyword arguments). `SPECIAL` holds NaN, infinities, zeros of
both signs and the ends of the exponential's range.
"""

from __future__ import annotations

import itertools

import choice_cases
import composed_cases
import gradient_cases
import quantized_cases
import torch

aten = torch.ops.aten
NAN, INF = float("nan"), float("inf")

SPECIAL = torch.tensor(
    [
        NAN,
        INF,
        -INF,
        0.0,
        -0.0,
        1e-5,
        -1e-5,
        30,
        -30,
        1e30,
        -1e30,
        88.8,
        -88.8,
        100,
        -104,
        3,
        -3,
        0.5,
    ]
).reshape(1, 2, 3, 3)
FINITE = torch.where(SPECIAL.isinf(), 7.0, SPECIAL)

_numbers = torch.Generator().manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_numbers)


IMAGE = rand(2, 4, 7, 9)
STATS = [rand(4), rand(4), rand(4), rand(4).abs() + 0.5]
CASES: dict[str, tuple[torch._ops.OpOverload, tuple, dict]] = {}


def case(name: str, overload: torch._ops.OpOverload, *arguments: object, **options: object) -> None:
    CASES[name] = (overload, arguments, options)


def _activations() -> None:
    plain = "relu sigmoid tanh silu hardswish hardsigmoid elu softplus mish"
    for name in f"{plain} neg abs exp expm1 log log1p erf sqrt rsqrt reciprocal".split():
        case(name, getattr(aten, name).default, SPECIAL)
    # oneDNN's eager gelu of infinity is NaN, depending on the size; the formula gives infinity.
    case("gelu", aten.gelu.default, FINITE)
    case("gelu tanh", aten.gelu.default, FINITE, approximate="tanh")
    case("selu", aten.elu.default, SPECIAL, 1.6732632, 1.0507009)
    case("celu", aten.elu.default, SPECIAL, 2.0, 1, 0.5)
    case("softplus with beta", aten.softplus.default, SPECIAL, 2.0, 5.0)
    case("leaky_relu", aten.leaky_relu.default, SPECIAL, 0.1)
    case("relu6", aten.hardtanh.default, SPECIAL, 0.0, 6.0)
    case("hardtanh", aten.hardtanh.default, SPECIAL)
    case("clamp low", aten.clamp.default, SPECIAL, -0.5)
    case("clamp high", aten.clamp.default, SPECIAL, None, 2)
    case("clamp crossed", aten.clamp.default, SPECIAL, 3.0, 1.0)
    case("clamp infinite", aten.clamp.default, SPECIAL, -INF, INF)
    case("clamp_min", aten.clamp_min.default, SPECIAL, 1)
    case("clamp_max", aten.clamp_max.default, SPECIAL, 1.5)
    case("prelu kernel", aten._prelu_kernel.default, SPECIAL, rand(1, 2, 1, 1))
    case("prelu", aten.prelu.default, SPECIAL, rand(2))


def _arithmetic() -> None:
    for name, overload in {"add": aten.add, "sub": aten.sub, "rsub": aten.rsub}.items():
        case(f"{name} alpha", overload.Tensor, SPECIAL, rand(3), alpha=2.7)
        case(f"{name} number", overload.Scalar, SPECIAL, 3.7, 2)
    for name, overload in {
        "add": aten.add,
        "sub": aten.sub,
        "mul": aten.mul,
        "div": aten.div,
    }.items():
        case(f"{name} per channel", overload.Tensor, SPECIAL, rand(1, 2, 1, 1))
        case(f"{name} as number", overload.Tensor, SPECIAL, 0.1)
    for exponent in (2, 3, 0.5, -0.5, -1, -2):
        case(f"power {exponent}", aten.pow.Tensor_Scalar, SPECIAL, exponent)
    case("mul by one element", aten.mul.Tensor, SPECIAL, rand(1))
    case("mul of one element", aten.mul.Tensor, rand(1, 1), rand(1))
    case("mul number", aten.mul.Scalar, SPECIAL, INF)
    case("div number", aten.div.Scalar, SPECIAL, 3)


def _contractions() -> None:
    case("mm", aten.mm.default, rand(4, 5), rand(5, 6))
    case("bmm", aten.bmm.default, rand(2, 4, 5), rand(2, 5, 6))
    case("addmm", aten.addmm.default, rand(6), rand(4, 5), rand(5, 6))
    case("addmm scaled", aten.addmm.default, rand(6), rand(4, 5), rand(5, 6), beta=2, alpha=0.3)
    case("addmm without bias", aten.addmm.default, rand(6) * NAN, rand(4, 5), rand(5, 6), beta=0)
    case("baddbmm", aten.baddbmm.default, rand(2, 4, 6), rand(2, 4, 5), rand(2, 5, 6), alpha=3)
    case("linear", aten.linear.default, rand(2, 3, 5), rand(6, 5), rand(6))
    case("matmul", aten.matmul.default, rand(2, 3, 4, 5), rand(3, 5, 6))


def _convolutions() -> None:
    # name: input, weight, bias, stride, padding, dilation, groups
    variants = {
        "1d": ((2, 4, 9), (6, 4, 3), True, [2], [1], [1], 1),
        "1d grouped": ((2, 4, 9), (6, 2, 3), True, [1], [2], [2], 2),
        "1d depthwise": ((2, 4, 9), (4, 1, 3), False, [1], [1], [1], 4),
        "1d depthwise multiplier": ((2, 4, 9), (8, 1, 3), True, [1], [1], [1], 4),
        "2d": ((2, 4, 9, 8), (6, 4, 3, 2), True, [2, 1], [1, 0], [1, 2], 1),
        "2d without bias": ((2, 4, 9, 8), (6, 4, 3, 3), False, [1, 1], [1, 1], [1, 1], 1),
        "grouped": ((2, 4, 9, 8), (6, 2, 3, 3), True, [1, 1], [1, 1], [1, 1], 2),
        "depthwise": ((2, 4, 9, 8), (4, 1, 3, 3), True, [2, 2], [1, 1], [2, 1], 4),
        "depthwise multiplier": ((2, 4, 9, 8), (12, 1, 3, 3), True, [2, 2], [1, 1], [1, 1], 4),
        "depthwise multiplier 16": ((1, 2, 5, 5), (32, 1, 3, 3), True, [1, 1], [1, 1], [1, 1], 2),
        "one channel": ((2, 1, 9, 8), (5, 1, 3, 3), True, [1, 1], [1, 1], [1, 1], 1),
        "to one channel": ((2, 4, 9, 8), (1, 4, 3, 3), True, [1, 1], [1, 1], [1, 1], 1),
        "one to one": ((2, 1, 9, 8), (1, 1, 3, 3), True, [1, 1], [1, 1], [1, 1], 1),
        "1x1 strided": ((2, 4, 9, 8), (6, 4, 1, 1), True, [2, 2], [0, 0], [1, 1], 1),
    }
    for name, (x, weight, bias, stride, padding, dilation, groups) in variants.items():
        tensors = rand(*x), rand(*weight), rand(weight[0]) if bias else None
        zeros = [0] * len(stride)
        case(
            f"conv {name}",
            aten.convolution.default,
            *tensors,
            stride,
            padding,
            dilation,
            False,
            zeros,
            groups,
        )


def _normalizations() -> None:
    case("batch norm", aten._native_batch_norm_legit_no_training.default, IMAGE, *STATS, 0.1, 1e-5)
    case(
        "batch norm of rows",
        aten._native_batch_norm_legit_no_training.default,
        rand(5, 4),
        *STATS,
        0.1,
        1e-5,
    )
    case(
        "batch norm plain",
        aten.native_batch_norm.default,
        IMAGE,
        None,
        None,
        *STATS[2:],
        False,
        0.1,
        1e-3,
    )
    case("batch norm 3d", aten._batch_norm_no_update.default, rand(5, 4, 6), *STATS, 0.1, 1e-5)
    case(
        "batch norm functional",
        aten._native_batch_norm_legit_functional.default,
        IMAGE,
        *STATS,
        False,
        0.1,
        1e-5,
    )


def _pools() -> None:
    windows = itertools.product([[2, 2], [3, 2]], [[2, 3], []], [[0, 0], [1, 1]], [False, True])
    for kernel, stride, padding, ceil in windows:
        name = f"{kernel} {stride} {padding} {'ceil' if ceil else 'floor'}"
        case(
            f"max pool {name}",
            aten.max_pool2d_with_indices.default,
            IMAGE,
            kernel,
            stride,
            padding,
            [1, 1],
            ceil,
        )
        for count_pad, divisor in itertools.product([False, True], [None, 3]):
            arguments = IMAGE, kernel, stride, padding, ceil, count_pad, divisor
            case(f"avg pool {name} {count_pad} {divisor}", aten.avg_pool2d.default, *arguments)
    case(
        "max pool dilated",
        aten.max_pool2d_with_indices.default,
        IMAGE,
        [2, 2],
        [1, 1],
        [1, 0],
        [2, 1],
        True,
    )
    image = rand(1, 2, 8, 8)
    case("max pool one number", aten.max_pool2d_with_indices.default, image, [2])
    case("avg pool one number", aten.avg_pool2d.default, image, [2])
    case(
        "avg pool one number, divisor", aten.avg_pool2d.default, image, [2], [], [0], False, True, 3
    )
    case("max pool special", aten.max_pool2d_with_indices.default, SPECIAL, [2, 2], [1, 1], [1, 1])
    for size in ([1, 1], [2, 3], [8, 12], [4, 1]):
        case(f"adaptive pool {size}", aten._adaptive_avg_pool2d.default, rand(2, 4, 8, 12), size)
    case("adaptive pool composite", aten.adaptive_avg_pool2d.default, rand(2, 4, 8, 12), [2, 3])


def _rest() -> None:
    case("mean over space", aten.mean.dim, IMAGE, [-1, -2], True)
    case("mean over channels", aten.mean.dim, IMAGE, [1])
    case("sum", aten.sum.dim_IntList, IMAGE, [0, 2], True)
    case("cat", aten.cat.default, [IMAGE, rand(2, 3, 7, 9), IMAGE], 1)
    case("cat last", aten.cat.default, [IMAGE, IMAGE], -1)
    case("pad", aten.constant_pad_nd.default, IMAGE, [1, 0, 2, 1], 0.5)
    case("pad batch", aten.constant_pad_nd.default, IMAGE, [0, 0, 0, 0, 1, 2], -INF)
    case("view", aten.view.default, IMAGE, [2, -1])
    case(
        "view of a permuted tensor",
        aten._unsafe_view.default,
        IMAGE.permute(0, 2, 3, 1),
        [2, 63, 4],
    )
    case("reshape", aten.reshape.default, IMAGE.permute(0, 2, 3, 1), [14, 36])
    case("flatten", aten.flatten.using_ints, IMAGE, 1)
    case("unsqueeze", aten.unsqueeze.default, IMAGE, 2)
    case("squeeze", aten.squeeze.default, rand(1, 3, 1, 2))
    case("squeeze dim", aten.squeeze.dim, rand(1, 3, 1, 2), 2)
    case("squeeze dims", aten.squeeze.dims, rand(1, 3, 1, 2), [0, -2, 1])
    case("permute", aten.permute.default, IMAGE, [0, 2, 3, 1])
    case("transpose", aten.transpose.int, IMAGE, 1, -1)
    case("t", aten.t.default, rand(3, 5))
    for name in ("alias", "detach", "clone", "contiguous", "lift_fresh", "lift_fresh_copy"):
        case(name, getattr(aten, name).default, IMAGE)
    case("clone to channels_last", aten.clone.default, IMAGE, memory_format=torch.channels_last)
    case("to bfloat16", aten._to_copy.default, IMAGE, dtype=torch.bfloat16)
    case("expand", aten.expand.default, IMAGE, [2, 4, 7, 9])
    case("expand to more", aten.expand.default, rand(4, 1), [3, 4, 5])
    case("repeat", aten.repeat.default, rand(2, 3), [2, 2, 3])
    case("view of a number", aten.view.default, torch.tensor(2.5), [1])
    case("slice", aten.slice.Tensor, IMAGE, 2, -3, 2**63 - 1)
    case("slice with a step", aten.slice.Tensor, IMAGE, -1, 1, 8, 2)
    case("select", aten.select.int, IMAGE, 1, -1)
    case("split", aten.split.Tensor, IMAGE, 3, 1)
    case("split with sizes", aten.split_with_sizes.default, IMAGE, [1, 3], 1)


for _family in (
    _activations,
    _arithmetic,
    _contractions,
    _convolutions,
    _normalizations,
    _pools,
    _rest,
):
    _family()
CASES |= choice_cases.CASES | gradient_cases.CASES | composed_cases.CASES | quantized_cases.CASES
