"""Host parts against eager on the values where lowerings go wrong: NaN, infinities, -0, limits.

Each test compiles one graph with one output for every call, and compares output by output.
"""

import itertools

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from mlir_npu.errors import HostLoweringError
from mlir_npu.lowering.fallback.llvm import compile_host_llvm
from mlir_npu.lowering.fallback.llvm_ops import ALLOWED
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options

aten = torch.ops.aten
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
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "where": lambda x, y: torch.where(x < y, x, y),
    "logical and": torch.logical_and,
    "logical or": torch.logical_or,
    "logical xor": torch.logical_xor,
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.5),
}
INTEGER_UNARY = {
    "abs": torch.abs,
    "neg": torch.neg,
    "sign": torch.sign,
    "sgn": torch.sgn,
    "x + 3": lambda x: x + 3,
    "x * 3": lambda x: x * 3,
    "x + 0.1": lambda x: x + 0.1,
    "x > 1": lambda x: x > 1,
    "x == 7": lambda x: x == 7,
    "x <= -1": lambda x: x <= -1,
    "clamp": lambda x: x.clamp(-3, 900),
    "~x": torch.bitwise_not,
    "to f32": lambda x: x.to(torch.float32),
    "to f64": lambda x: x.to(torch.float64),
    "to bool": lambda x: x.to(torch.bool),
    "to i32": lambda x: x.to(torch.int32) + 0,
    "to i64": lambda x: x.to(torch.int64) + 0,
}
INTEGER_BINARY = {
    name: BINARY[name]
    for name in (
        *("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "where"),
        *("logical and", "logical or", "logical xor"),
    )
} | {
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}
BOOLEAN = {
    "and": torch.logical_and,
    "or": torch.logical_or,
    "xor": torch.logical_xor,
    "eq": torch.eq,
    "not": lambda x, y: torch.logical_not(x),
    "ne": torch.ne,
    "mul": torch.mul,
    "&": torch.bitwise_and,
    "|": torch.bitwise_or,
    "^": torch.bitwise_xor,
    "~": lambda x, y: ~x,
    "where": lambda x, y: torch.where(x, y, ~y),
    "to f32": lambda x, y: x.to(torch.float32),
    "to i64": lambda x, y: x.to(torch.int64),
}
MOVEMENT = {
    "view": lambda x: x.view(4, 6) * 1,
    "permute": lambda x: x.permute(2, 0, 1).clone(),
    "transpose": lambda x: x.transpose(0, 1).contiguous(),
    "expand": lambda x: x[:, :1].expand(2, 5, 4) * 1,
    "cat": lambda x: torch.cat([x, x[:, 1:]], 1),
    "stack": lambda x: torch.stack([x, x], 1),
    "slice": lambda x: x[:, 1:3, ::2].clone(),
    "select": lambda x: x[1].clone(),
    "pad": lambda x: F.pad(x, (1, 2), value=1),
    "flip": lambda x: x.flip(0, 2),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "split": lambda x: x.split(2, 2)[1].clone(),
    "unbind": lambda x: x.unbind(1)[2].clone(),
    "squeeze": lambda x: x[:1].squeeze(0).clone(),
    "unsqueeze": lambda x: x.unsqueeze(1) + x[:, None],
    "full": lambda x: torch.full_like(x, 2),
    "zeros": lambda x: torch.zeros_like(x),
    "tril": lambda x: x.tril(),
    "chunk": lambda x: x.chunk(3, 1)[2] + 0,
}
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


def compile_host(function, *tensors):
    graph_module = make_fx(function, tracing_mode="fake")(*tensors)
    graph_module.graph.eliminate_dead_code()
    inputs = tuple(node.name for node in graph_module.graph.find_nodes(op="placeholder"))
    return compile_host_llvm(Part("host_0", "host", graph_module, inputs, (), 0, 0, 0), Options())


def assert_matches(calls, *tensors, ulps=4):
    """NaN where eager has NaN, the same signs of zeros, and at most `ulps` units of difference."""
    compiled = compile_host(lambda *xs: tuple(call(*xs) for call in calls.values()), *tensors)
    for name, actual, call in zip(calls, compiled(*tensors), calls.values(), strict=True):
        expected = call(*tensors)
        assert actual.dtype is expected.dtype, name
        assert actual.stride() == expected.stride(), name
        if not expected.is_floating_point():
            assert torch.equal(actual, expected), f"{name}: {actual} is not {expected}"
            continue
        tolerance = ulps * torch.finfo(expected.dtype).eps
        torch.testing.assert_close(
            actual,
            expected,
            rtol=tolerance,
            atol=0,
            equal_nan=True,
            msg=lambda m, n=name: f"{n}: {m}",
        )
        zeros = expected == 0
        assert torch.equal(actual.signbit()[zeros], expected.signbit()[zeros]), name


def pairs(values, dtype):
    both = list(itertools.product(values, values))
    return [torch.tensor([pair[i] for pair in both], dtype=dtype) for i in (0, 1)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_floats(dtype):
    assert_matches(UNARY, torch.tensor(SPECIAL_FLOATS, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary_floats_between(dtype):
    assert_matches(UNARY, torch.linspace(-20, 20, 1001, dtype=dtype), ulps=8)


@pytest.mark.parametrize("dtype", FLOATS)
def test_binary_floats(dtype):
    assert_matches(BINARY, *pairs(SPECIAL_FLOATS, dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_unary_halves(dtype):
    # eager's erf of halves is 2 % off near 0
    calls = {name: call for name, call in UNARY.items() if name != "erf"}
    assert_matches(calls, torch.tensor(SPECIAL_FLOATS, dtype=dtype), ulps=1)
    assert_matches(calls, torch.linspace(-20, 20, 1001).to(dtype), ulps=1)
    assert_matches({"erf": torch.erf}, torch.linspace(0.1, 5, 101).to(dtype), ulps=1)
    assert_matches({"1.7": lambda x: x**1.7}, torch.linspace(0.1, 5, 101).to(dtype), ulps=1)


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate, dtype):
    """1 + erf(x) cancels below 0, in eager as here: what is left of it is relative to 1."""
    x = torch.linspace(-20, 20, 1001).to(dtype)
    (actual,) = compile_host(lambda x: F.gelu(x, approximate=approximate), x)(x)
    eps = torch.finfo(dtype).eps
    expected = F.gelu(x, approximate=approximate)
    torch.testing.assert_close(actual, expected, rtol=2 * eps, atol=8 * eps)
    ends = torch.tensor([0.0, -0.0, 1e4, -1e4, NAN], dtype=dtype)
    assert_matches({"gelu": lambda x: F.gelu(x, approximate=approximate)}, ends)


@pytest.mark.parametrize("dtype", HALVES)
def test_binary_halves(dtype):
    assert_matches(BINARY, *pairs(SPECIAL_FLOATS, dtype), ulps=1)


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_added_up_in_single_precision(dtype):
    """Thousands of small addends: a sum in halves would stop growing."""
    assert_matches(FLOAT_REDUCTIONS, torch.rand(2, 3, 4, dtype=dtype), ulps=2)
    calls = {n: FLOAT_REDUCTIONS[n] for n in ("sum", "sum dim", "mean", "var dim", "softmax")}
    assert_matches(calls, torch.rand(16, 300, 20).to(dtype), ulps=2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_power_and_scaled_sum(dtype):
    finite = [v for v in SPECIAL_FLOATS if abs(v) < 1e5]
    calls = {
        "1.7": lambda x, y: x**1.7,
        "5": lambda x, y: x**5,
        "pow": torch.pow,
        "alpha": lambda x, y: torch.add(x, y, alpha=3),
    }
    assert_matches(calls, *pairs(finite, dtype), ulps=16)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_unary_integers(dtype):
    assert_matches(INTEGER_UNARY, torch.tensor(SPECIAL_INTEGERS, dtype=dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_binary_integers_wrap(dtype):
    assert_matches(INTEGER_BINARY, *pairs(SPECIAL_INTEGERS, dtype))


def test_booleans():
    assert_matches(BOOLEAN, *pairs((False, True), torch.bool))


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES, *INTEGERS])
def test_movement(dtype):
    assert_matches(MOVEMENT, torch.arange(24).view(2, 3, 4).to(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_reductions(dtype):
    assert_matches(REDUCTIONS, torch.randint(-(2**30), 2**30, (2, 3, 4), dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_reductions(dtype):
    assert_matches(FLOAT_REDUCTIONS, torch.randn(2, 3, 4, dtype=dtype), ulps=64)


@pytest.mark.parametrize("special", [NAN, INF, -INF])
@pytest.mark.parametrize("position", [0, 5, 23])
def test_reductions_see_one_special_value(special, position):
    x = torch.randn(24)
    x[position] = special
    calls = {n: FLOAT_REDUCTIONS[n] for n in ("sum dim", "amax", "amin", "softmax", "log_softmax")}
    assert_matches(calls, x.view(2, 3, 4), ulps=64)


def test_boolean_reductions():
    calls = {
        "any": torch.any,
        "all": torch.all,
        "any 0": lambda x: x.any(0),
        "all 1": lambda x: x.all(1),
    }
    for bits in itertools.product((False, True), repeat=4):
        assert_matches(calls, torch.tensor(bits).view(2, 2))


BACKWARD = {
    "relu": lambda g, x: aten.threshold_backward(g, x, 0),
    "hardtanh": lambda g, x: aten.hardtanh_backward(g, x, -1, 1),
    "hardswish": lambda g, x: aten.hardswish_backward(g, x),
    "leaky_relu": lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False),
}


def test_backward_of_activations():
    # eager treats NaN otherwise in the last elements that do not fill a vector: leave none over
    whole_vectors = [x.repeat(16) for x in pairs(SPECIAL_FLOATS, torch.float32)]
    assert_matches(BACKWARD, *whole_vectors, ulps=16)


def test_backward_of_bounded_activations():
    """Sigmoid and tanh are given results of theirs, which lie in [0, 1] and [-1, 1]."""
    calls = {"sigmoid": aten.sigmoid_backward, "tanh": aten.tanh_backward}
    calls["silu"] = aten.silu_backward
    results = [v for v in SPECIAL_FLOATS if 0 <= v <= 1] + [NAN]
    gradients = [v for v in SPECIAL_FLOATS if abs(v) < 1e5]
    both = list(itertools.product(gradients, results))
    assert_matches(calls, *(torch.tensor([b[i] for b in both]) for i in (0, 1)), ulps=16)


@pytest.mark.parametrize(
    ("call", "tensors", "limit"),
    [
        (torch.exp, [torch.ones(1024, dtype=torch.float64)], 1024),
        (lambda x: torch.cat([x, x]), [torch.ones(8192)], 16384),
    ],
)
def test_what_eager_does_faster_runs_there(call, tensors, limit):
    assert_matches({"within": call}, *tensors)
    larger = [torch.cat([x, x[:1]]) for x in tensors]
    with pytest.raises(HostLoweringError, match=f"eager is faster above {limit}"):
        compile_host(call, *larger)


@pytest.mark.parametrize(
    ("call", "tensors", "reason"),
    [
        (torch.mm, [torch.ones(2, 2)] * 2, "aten.mm.default is not in the list"),
        (torch.fmod, [torch.ones(2)] * 2, "aten.fmod.Tensor is not in the list"),
        (lambda x: x + 1, [torch.ones(2, dtype=torch.int8)], "not verified for int8"),
        (lambda x: x // 2, [torch.ones(2, dtype=torch.int64)], "not in the list"),
        (lambda x: x.to(torch.int64), [torch.ones(2)], "converts floats to int64"),
        (lambda x: x > 0.5, [torch.ones(2, dtype=torch.int32)], "integers with the float 0.5"),
        (torch.add, [torch.ones(2), torch.ones(2, dtype=torch.int64)], "mixes float32, int64"),
        (lambda x, i: x[i], [torch.ones(2), torch.tensor([5])], "aten.index.Tensor"),
        (torch.atan, [torch.ones(2)], "aten.atan.default is not in the list"),
        (lambda x: x, [torch.ones(2)], "computes no tensor"),
    ],
)
def test_what_is_not_verified_is_refused(call, tensors, reason):
    with pytest.raises(HostLoweringError, match=reason):
        compile_host(call, *tensors)


def test_every_allowed_call_is_one_that_exists_and_is_functional():
    for overload in ALLOWED:
        assert not overload._schema.is_mutable, overload


def test_strided_inputs_and_outputs():
    x = torch.randn(4, 6)[:, ::2]
    y = torch.randn(3, 4).t()
    compiled = compile_host(lambda x, y: (x + y, (x * y).t()), x, y)
    for actual, expected in zip(compiled(x, y), (x + y, (x * y).t()), strict=True):
        assert torch.equal(actual, expected)
        assert actual.stride() == expected.stride()


LAYOUTS = {
    "transposed": lambda x: x.transpose(0, 2),
    "channels last": lambda x: x.permute(0, 2, 1).contiguous().permute(0, 2, 1),
    "every other": lambda x: x[:, ::2],
    "expanded": lambda x: x[:, :1].expand(x.shape),
    "offset": lambda x: x[1:, 1:, 1:],
    "one column": lambda x: x[:, :, :1],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype):
    """Chains, reductions and masks where lanes are strided, repeated or too few for a vector."""
    x = (torch.randn(5, 13, 37) * 8).to(dtype)
    calls = {
        "chain": lambda x, y: (x + y) * x - 3,
        "mask": lambda x, y: torch.where((x < y) & (y > 0), x, y),
        "sum": lambda x, y: (x * y).sum(0),
        "amax": lambda x, y: x.amax(1),
        "sums": lambda x, y: (x - y).sum((1, 2)),
    }
    if dtype.is_floating_point:
        calls["softmax"] = lambda x, y: torch.softmax(x, 1)
        calls["norm"] = lambda x, y: F.layer_norm(x, x.shape[2:]) * y
    x = LAYOUTS[layout](x)
    y = LAYOUTS[layout]((torch.randn(5, 13, 37) * 8).to(dtype))
    compiled = compile_host(lambda *xs: tuple(call(*xs) for call in calls.values()), x, y)
    for name, actual, call in zip(calls, compiled(x, y), calls.values(), strict=True):
        expected = call(x, y)
        assert actual.stride() == expected.stride(), name
        tolerance = 2e-2 if dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("length", [1, 7, 16, 17, 63, 64, 65, 100, 129, 1000, 4099])
def test_every_element_of_odd_lengths(length):
    """Whole vectors, what is left over, and tiles that reach over the end."""
    x = torch.arange(3 * length, dtype=torch.float32).view(3, length) % 1021
    calls = {
        "chain": lambda x: x * 2 + 1,
        "sum": lambda x: x.sum(1),
        "columns": lambda x: x.sum(0),
        "all": lambda x: x.sum(),
        "amax": lambda x: x.amax(0),
        "centred": lambda x: x - x.amin(1, keepdim=True),
        "any": lambda x: (x > 1000).any(1),
    }
    compiled = compile_host(lambda x: tuple(call(x) for call in calls.values()), x)
    for name, actual, call in zip(calls, compiled(x), calls.values(), strict=True):
        assert torch.equal(actual, call(x)), name


@pytest.mark.parametrize("shape", [(100_003,), (65536,), (7, 20_011), (20_011, 7), (9000, 70)])
def test_long_reductions(shape):
    """They are taken in parts, of which the last may be smaller. Whole numbers add up exactly."""
    x = torch.randint(-8, 9, shape).float()
    calls = {"sum": torch.sum, "amax": lambda x: x.amax(0), "columns": lambda x: x.sum(0)}
    assert_matches(calls, x, ulps=0)
    assert_matches(calls, x.long(), ulps=0)
    assert_matches({"any": torch.any, "all": torch.all}, x > 7)


def test_long_sums_lose_no_digits():
    x = torch.rand(1 << 20) + 0.5
    compiled = compile_host(lambda x: (x.sum(), x.view(-1, 4).sum(0)), x)
    for actual, exact in zip(compiled(x), (x.double().sum(), x.double().view(-1, 4).sum(0))):
        torch.testing.assert_close(actual.double(), exact, rtol=1e-6, atol=0)
