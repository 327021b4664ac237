"""Random host parts against eager: chains of exact ops on special values of all types.

Every step is exact arithmetic, so results are equal bit by bit, whatever ran together. Steps that
LLVM does not take run in eager between the others.
"""

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.fx.experimental.proxy_tensor import make_fx

from mlir_npu.lowering.fallback import compile_host
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options

INF, NAN = float("inf"), float("nan")
LENGTH = 37  # vectors, and a rest
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
TYPES = (*FLOATS, *INTEGERS, torch.bool)
NUMBERS = (0, 1, -1, 2, 3, -7, 127, 255, True, 0.0, -0.0, 0.5, 1.5, -2.5, 0.1, 1e-40, INF, NAN)

UNARY = {
    "abs": torch.abs,
    "neg": torch.neg,
    "sign": torch.sign,
    "relu": torch.relu,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "square": torch.square,
    "not": torch.logical_not,
    "invert": torch.bitwise_not,
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isfinite": torch.isfinite,
    "signbit": torch.signbit,
    "sqrt": torch.sqrt,
    "clamp": lambda x: x.clamp(-1, 2),
    "clamp_min": lambda x: x.clamp_min(0.5),
    "any": torch.any,
    "all": torch.all,
    "amax": torch.amax,
    "amin": torch.amin,
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "floor_divide": torch.floor_divide,
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "logical_and": torch.logical_and,
    "logical_xor": torch.logical_xor,
    "copysign": torch.copysign,
    "shift": lambda x, y: x << y,
    "where": lambda x, y: torch.where(x > 0, x, y),
    "chosen": lambda x, y: torch.where(y != y, y, x),
    "filled": lambda x, y: x.masked_fill(y > 0, 2),
}
CASTS = {f"to {dtype}": dtype for dtype in TYPES}


def special(dtype, seed, shape):
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        values = [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 3.0, -7.0, 100.7, INF, -INF, NAN]
        values += [info.max, info.min, info.tiny, -info.tiny, info.smallest_normal / 4]
    else:
        info = torch.iinfo(dtype)
        values = [0, 1, 2, 3, 5, 7, 100, info.max, info.max - 1, info.min]
        values += [-1, -2, -7] if dtype.is_signed else []
    chosen = torch.randint(0, len(values), shape, generator=generator)
    return torch.tensor(values, dtype=dtype)[chosen]


@st.composite
def chains(draw):
    """Types and shapes of the inputs, and steps: a name and two operands, each the position of an
    earlier value or a number."""
    shapes = st.sampled_from([(LENGTH,), (3, LENGTH), (3, 1), ()])
    inputs = draw(st.lists(st.tuples(st.sampled_from(TYPES), shapes), min_size=2, max_size=3))
    steps = []
    for number in range(draw(st.integers(1, 6))):
        position = st.integers(0, len(inputs) + number - 1)
        name = draw(st.sampled_from([*UNARY, *BINARY, *BINARY, *CASTS]))
        second = draw(position | st.sampled_from(NUMBERS).map(lambda n: ("number", n)))
        steps.append((name, draw(position), second))
    return inputs, steps, draw(st.integers(0, 9))


def run(steps, tensors):
    """All values; a step that eager refuses is left out, its first operand in its place."""
    values = list(tensors)
    for name, first, second in steps:
        values.append(step(name, values[first], second, values))
    return values[len(tensors) :]


def step(name, x, second, values):
    if name in CASTS:
        dtype = CASTS[name]
        to_integer = x.is_floating_point() and not dtype.is_floating_point
        return x if to_integer and dtype is not torch.bool else x.to(dtype)
    try:
        if name in UNARY:
            return UNARY[name](x)
        y = second[1] if isinstance(second, tuple) else values[second]
        if not isinstance(y, torch.Tensor) and name not in ("add", "sub", "mul", "div", "eq", "lt"):
            y = torch.tensor(y)
        return BINARY[name](x, y)
    except (RuntimeError, NotImplementedError, TypeError):
        return x


def compiled(steps, tensors):
    graph_module = make_fx(lambda *xs: tuple(run(steps, xs)), tracing_mode="fake")(*tensors)
    graph_module.graph.eliminate_dead_code()
    inputs = tuple(node.name for node in graph_module.graph.find_nodes(op="placeholder"))
    part = Part("host_0", "host", graph_module, inputs, (), 0, 0, 0)
    return compile_host(part, Options(fallback="llvm", cache=False)), graph_module


def same(actual, expected):
    if not expected.is_floating_point():
        return torch.equal(actual, expected)
    is_nan = expected.isnan()
    equal = torch.equal(actual.isnan(), is_nan) and torch.equal(actual[~is_nan], expected[~is_nan])
    signs = actual.signbit() == expected.signbit()
    return equal and signs[~is_nan].all().item()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(chains())
def test_random_chains(chain):
    inputs, steps, seed = chain
    tensors = [special(dtype, seed + i, shape) for i, (dtype, shape) in enumerate(inputs)]
    host, graph = compiled(steps, tensors)
    try:
        expected = graph(*tensors)
    except RuntimeError:  # a division of integers by 0
        return
    assert not (host.reason or "").startswith(("internal", "LLVM lowering")), host.reason
    for number, (actual, wanted) in enumerate(zip(host.call(*tensors), expected, strict=True)):
        assert actual.dtype is wanted.dtype, steps[number]
        assert actual.shape == wanted.shape, steps[number]
        assert same(actual, wanted), f"{steps[: number + 1]} ({host.engine}):\n{actual}\n{wanted}"
