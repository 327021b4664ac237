"""Calls of host parts compiled by LLVM, compared with eager output by output."""

import itertools

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from mlir_npu.lowering.fallback.llvm import compile_host_llvm
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options

INF, NAN = float("inf"), float("nan")
FLOATS = (torch.float32, torch.float64)
HALVES = (torch.bfloat16, torch.float16)
INTEGERS = (torch.int32, torch.int64)
SPECIAL_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    7.0,
    -3.0,
    -7.0,
    88.0,
    -88.0,
    100.0,
    -104.0,
    1e-5,
    1e-40,
    123456.7,
    3e38,
    -3e38,
    INF,
    -INF,
    NAN,
)
SPECIAL_INTEGERS = (0, 1, -1, 2, 7, -7, 1000, 2**31 - 1, -(2**31))
REDUCTIONS = {
    "sum": torch.sum,
    "sum dim": lambda x: x.sum(1),
    "sum keep": lambda x: x.sum((0, 2), keepdim=True),
    "amax": lambda x: x.amax(2),
    "amin": lambda x: x.amin((0, 1)),
}
FLOAT_REDUCTIONS = REDUCTIONS | {
    "var": torch.var,
    "var dim": lambda x: x.var((0, 2), correction=0, keepdim=True),
    "var_mean": lambda x: torch.var_mean(x, 1)[1],
    "mean": torch.mean,
    "mean dim": lambda x: x.mean((1, 2)),
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 3),
    "logsumexp": lambda x: x.logsumexp(1),
    "std": lambda x: x.std(2),
    "mse": lambda x: F.mse_loss(x, x.flip(0)),
}
UNARY = {
    "abs": torch.abs,
    "neg": torch.neg,
    "sign": torch.sign,
    "sgn": torch.sgn,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "relu": torch.relu,
    "silu": F.silu,
    "softplus": F.softplus,
    "mish": F.mish,
    "elu": F.elu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "hardtanh": F.hardtanh,
    "leaky_relu": F.leaky_relu,
    "relu6": F.relu6,
    "clamp": lambda x: x.clamp(-1, 2.5),
    "clamp_min": lambda x: x.clamp_min(0.1),
    "clamp_max": lambda x: x.clamp_max(0.1),
    "add 0.1": lambda x: x + 0.1,
    "sub 0.1": lambda x: x - 0.1,
    "0.1 - x": lambda x: 0.1 - x,
    "0.1 * x": lambda x: 0.1 * x,
    "x / 3": lambda x: x / 3,
    "3 / x": lambda x: 3 / x,
    "x ** 2": lambda x: x**2,
    "x ** 3": lambda x: x**3,
    "x ** 0.5": lambda x: x**0.5,
    "x ** -0.5": lambda x: x**-0.5,
    "x ** -1": lambda x: x**-1,
    "x ** -2": lambda x: x**-2,
    "square": torch.square,
    "not": torch.logical_not,
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isfinite": torch.isfinite,
    "x == 0.1": lambda x: x == 0.1,
    "x != 0.1": lambda x: x != 0.1,
    "x < 0.1": lambda x: x < 0.1,
    "x <= 0.1": lambda x: x <= 0.1,
    "x > 0.1": lambda x: x > 0.1,
    "x >= 0.1": lambda x: x >= 0.1,
    "masked_fill": lambda x: x.masked_fill(x > 0, -1.5),
    "where": lambda x: torch.where(x > 0, x, 0.0),
}


def compile_host(function, *tensors):
    graph_module = make_fx(function, tracing_mode="fake")(*tensors)
    graph_module.graph.eliminate_dead_code()
    inputs = tuple(node.name for node in graph_module.graph.find_nodes(op="placeholder"))
    return compile_host_llvm(Part("host_0", "host", graph_module, inputs, (), 0, 0, 0), Options())


def assert_matches(calls, *tensors, ulps=4, ulps_of_one=0):
    """NaN where eager has NaN, the same signs of zeros, and at most `ulps` units of difference.

    ulps_of_one: units in the last place of 1 beside them, for what is left where terms cancel.
    """
    compiled = compile_host(lambda *xs: tuple(call(*xs) for call in calls.values()), *tensors)
    for name, actual, call in zip(calls, compiled(*tensors), calls.values(), strict=True):
        expected = call(*tensors)
        assert actual.dtype is expected.dtype, name
        assert actual.stride() == expected.stride(), name
        if not expected.is_floating_point():
            assert torch.equal(actual, expected), f"{name}: {actual} is not {expected}"
            continue
        info = torch.finfo(expected.dtype)
        tolerance = ulps * info.eps  # of normal numbers; all denormal ones are as far apart
        torch.testing.assert_close(
            actual,
            expected,
            rtol=tolerance,
            atol=ulps_of_one * info.eps + info.smallest_normal * info.eps,
            equal_nan=True,
            msg=lambda m, n=name: f"{n}: {m}",
        )
        zeros = expected == 0
        assert torch.equal(actual.signbit()[zeros], expected.signbit()[zeros]), name


def pairs(values, dtype):
    both = list(itertools.product(values, values))
    return [torch.tensor([pair[i] for pair in both], dtype=dtype) for i in (0, 1)]
