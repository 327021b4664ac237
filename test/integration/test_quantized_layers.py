"""Layers between quantised tensors: every bit is that of the integer semantics, and eager's floats
are within one step of the quantisation."""

import pytest
import torch
from quantized_reference import Weights, dequantise, quantise, reference, through
from torch.nn import functional

import mlir_npu

TARGETS = ("host", "small")


class Layer(torch.nn.Module):
    """function(x, weights) of a quantised x, quantised again."""

    def __init__(
        self, function, shape=None, *, zero=122, dtype=torch.uint8, weights_zero=0, **weights
    ):
        super().__init__()
        self.function, self.zero, self.dtype = function, zero, dtype
        self.weights = None if shape is None else Weights(*shape, zero=weights_zero, **weights)

    def forward(self, x):
        x = through(x, 0.031, self.zero, self.dtype)
        out = self.function(x, self.weights)
        return quantise(out, 0.07, self.zero // 2, self.dtype)


def conv(dimensions=2, bias=True, relu=False, **options):
    call = (None, functional.conv1d, functional.conv2d, functional.conv3d)[dimensions]

    def function(x, weights):
        out = call(x, weights(), weights.bias if bias else None, **options)
        return out.relu() if relu else out

    return function


def linear(x, weights):
    return functional.linear(x, weights(), weights.bias)


IMAGE, WIDE = (2, 8, 11, 9), (1, 16, 14, 14)
LAYERS = {
    "plain": (Layer(conv(), (16, 8, 3, 3)), IMAGE),
    "padded, relu": (Layer(conv(padding=1, relu=True), (24, 8, 3, 3)), IMAGE),
    "int8": (Layer(conv(padding=1), (16, 8, 3, 3), zero=-7, dtype=torch.int8), IMAGE),
    "zero points of 0": (Layer(conv(padding=1), (16, 8, 3, 3), zero=0, dtype=torch.int8), IMAGE),
    "ends of the range": (Layer(conv(padding=2), (16, 8, 3, 3), zero=255), IMAGE),
    "stride": (Layer(conv(stride=2, padding=1), (16, 8, 3, 3)), IMAGE),
    "dilation": (Layer(conv(dilation=2, padding=(2, 1)), (16, 8, 3, 3)), IMAGE),
    "uneven": (Layer(conv(stride=(1, 2), padding=(0, 2)), (5, 8, 2, 5)), IMAGE),
    "no bias": (Layer(conv(bias=False), (16, 8, 3, 3)), IMAGE),
    "one scale": (Layer(conv(padding=1), (16, 8, 3, 3), per_channel=False), IMAGE),
    "1x1": (Layer(conv(), (32, 8, 1, 1)), IMAGE),
    "1x1, odd channels": (Layer(conv(), (13, 7, 1, 1)), (1, 7, 5, 6)),
    "3 channels": (Layer(conv(stride=2, padding=3), (16, 3, 7, 7)), (1, 3, 24, 24)),
    "1 channel": (Layer(conv(padding=1), (8, 1, 3, 3)), (2, 1, 9, 9)),
    "many channels": (Layer(conv(padding=1), (48, 80, 3, 3)), (1, 80, 7, 7)),
    "grouped": (Layer(conv(padding=1, groups=4), (16, 2, 3, 3)), IMAGE),
    "grouped wide": (Layer(conv(padding=1, groups=2), (32, 8, 3, 3)), WIDE),
    "depthwise": (Layer(conv(padding=1, groups=16), (16, 1, 3, 3)), WIDE),
    "depthwise stride": (Layer(conv(padding=2, stride=2, groups=16), (16, 1, 5, 5)), WIDE),
    "multiplier": (Layer(conv(padding=1, groups=8), (16, 1, 3, 3)), IMAGE),
    "1-D": (Layer(conv(1, padding=2, stride=2), (16, 8, 5)), (2, 8, 21)),
    "3-D": (Layer(conv(3, padding=(0, 1, 1)), (8, 4, 2, 3, 3)), (1, 4, 4, 6, 6)),
    "linear": (Layer(linear, (10, 64)), (4, 64)),
    "linear, one row": (Layer(linear, (33, 50), zero=3), (1, 50)),
    "linear of three": (Layer(linear, (20, 24), dtype=torch.int8, zero=5), (2, 6, 24)),
    "maxima": (Layer(lambda x, _: functional.max_pool2d(x, 3, 2, 1)), WIDE),
    "averages": (Layer(lambda x, _: functional.avg_pool2d(x, 2)), WIDE),
    "padded averages": (Layer(lambda x, _: functional.avg_pool2d(x, 3, 2, 1)), WIDE),
    "adaptive averages": (Layer(lambda x, _: functional.adaptive_avg_pool2d(x, 7)), WIDE),
    "average of all": (Layer(lambda x, _: functional.adaptive_avg_pool2d(x, 1)), WIDE),
    "pad": (Layer(lambda x, _: functional.pad(x, (1, 2, 0, 1))), IMAGE),
    "cat": (Layer(lambda x, _: torch.cat([x, x.relu()], 1)), WIDE),
    "add": (Layer(lambda x, _: x + through(x * 0.3, 0.01, 7)), WIDE),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LAYERS)
def test_every_bit_is_that_of_the_integer_semantics(name, target):
    layer, shape = LAYERS[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 2
    options = {"target": target, "min_region_macs": 0, "strict": True}
    explanation = mlir_npu.explain(layer, x, options=options)
    compiled = explanation.result
    with torch.no_grad():
        exact, eager = reference(layer, x), layer(x)
    assert compiled.dtype == eager.dtype and compiled.unique().numel() >= 5
    assert torch.equal(compiled, exact)
    assert (compiled.int() - eager.int()).abs().max() <= 1
    assert explanation.integer_macs == explanation.macs


@pytest.mark.parametrize("windows", [(3, 5), (14, 4), (16, 1), 9])
def test_averages_of_windows_that_differ_are_means_of_floats(windows):
    layer = Layer(lambda x, _: functional.adaptive_avg_pool2d(x, windows))
    x = torch.randn(WIDE, generator=torch.Generator().manual_seed(1)) * 2
    compiled = mlir_npu.explain(layer, x, options={"min_region_macs": 0, "strict": True}).result
    with torch.no_grad():
        eager = layer(x)
    assert compiled.shape == eager.shape and compiled.unique().numel() >= 5
    assert (compiled.int() - eager.int()).abs().max() <= 1


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize("window", [1, 3])
def test_regions_take_and_give_integers(window, dtype, memory):
    weights = Weights(24, 16, window, window)

    def function(x):
        x = dequantise(x, 0.031, 17)
        out = functional.conv2d(x, weights(), weights.bias, padding=window // 2)
        return quantise(out, 0.07, 60, dtype)

    x = torch.randint(0, 128, (2, 16, 10, 10)).to(dtype, memory_format=memory)
    with torch.no_grad():
        explanation = mlir_npu.explain(function, x, options={"strict": True})
        exact = reference(function, x)
    assert torch.equal(explanation.result, exact)
    assert explanation.integer_macs == explanation.macs


@pytest.mark.parametrize("between", [torch.sin, torch.relu])
def test_batches_of_any_size_and_integers_between_parts(between):
    weights = Weights(16, 8, 3, 3)

    def function(x):
        x = through(x, 0.031, 122)
        y = functional.conv2d(x, weights(), weights.bias, padding=1)
        y = between(through(y, 0.05, 0))
        return quantise(functional.max_pool2d(y, 3, 2, 1), 0.02, 100)

    torch._dynamo.reset()
    compiled = torch.compile(
        function, backend="mlir_npu", dynamic=True, options={"min_region_macs": 0}
    )
    with torch.no_grad():
        for count in (3, 5, 2):
            x = torch.randn(count, 8, 12, 14)
            assert torch.equal(compiled(x), reference(function, x))


@pytest.mark.parametrize("engine", ["llvm", "eager", "inductor"])
@pytest.mark.parametrize("forced", ["convolution", "dequantize_per_tensor", "mean"])
def test_parts_that_are_forced_to_the_host_compute_what_eager_does(forced, engine):
    weights = Weights(16, 8, 3, 3)

    def function(x):
        y = functional.conv2d(through(x, 0.031, 122), weights(), weights.bias, padding=1)
        return through(through(y, 0.05, 130).mean((2, 3)), 0.01, 3)

    x = torch.randn(2, 8, 12, 14)
    options = {"host_ops": [forced], "fallback": engine, "min_region_macs": 0}
    with torch.no_grad():
        explanation = mlir_npu.explain(function, x, options=options)
        assert (explanation.result - function(x)).abs().max() < 0.0101
    assert explanation.host_nodes >= 1


def test_a_residual_block_stays_integers_between_its_convolutions():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Weights(16, 16, 3, 3), Weights(16, 16, 1, 1)

        def forward(self, x):
            x = through(x, 0.031, 122)
            y = functional.conv2d(x, self.first(), self.first.bias, padding=1).relu()
            y = through(y, 0.05, 0)
            y = functional.conv2d(y, self.second(), self.second.bias)
            return through((x + y).relu(), 0.04, 0)

    block, x = Block().eval(), torch.randn(1, 16, 10, 10)
    with torch.no_grad():
        explanation = mlir_npu.explain(block, x)
        assert torch.equal(explanation.result, reference(block, x))
    assert explanation.integer_macs == explanation.npu_macs == explanation.macs == 256_000
    assert "256,000 of them int8" in str(explanation)


def test_weights_that_change_are_packed_again():
    layer, x = Layer(conv(padding=1), (16, 8, 3, 3)).eval(), torch.randn(IMAGE)
    compiled = torch.compile(layer, backend="mlir_npu")
    with torch.no_grad():
        assert torch.equal(compiled(x), reference(layer, x))
        layer.weights.integers.add_(3)
        layer.weights.scales.mul_(0.7)
        assert torch.equal(compiled(x), reference(layer, x))


def test_zero_points_of_weights_that_were_zero_must_stay_so():
    layer, x = Layer(conv(padding=1), (16, 8, 3, 3)).eval(), torch.randn(IMAGE)
    compiled = torch.compile(layer, backend="mlir_npu")
    with torch.no_grad():
        compiled(x)
        layer.weights.zeros[3] = 2
        with pytest.raises(ValueError, match="zero points of weights of npu_0 are not 0 any more"):
            compiled(x)


def test_weights_with_other_zero_points_are_multiplied_as_floats():
    layer, x = Layer(conv(padding=1), (16, 8, 3, 3), weights_zero=5).eval(), torch.randn(IMAGE)
    with torch.no_grad():
        explanation = mlir_npu.explain(layer, x)
        eager = layer(x)
    assert explanation.integer_macs == 0 and explanation.npu_macs == explanation.macs
    assert (explanation.result.int() - eager.int()).abs().max() <= 1


def test_dynamic_quantisation_stays_on_the_host_with_its_reason():
    def function(x, scale, zero):
        y = torch.ops.quantized_decomposed.quantize_per_tensor.tensor(
            x, scale, zero, 0, 255, torch.uint8
        )
        return dequantise(y, 0.1, 3)

    x = torch.randn(1, 16, 40, 40)
    explanation = mlir_npu.explain(function, x, torch.tensor(0.1), torch.tensor(3))
    reasons = {r.op: r.reason for r in explanation.graphs[0].rejections}
    overload = "quantized_decomposed.quantize_per_tensor.tensor"
    assert reasons[overload] == f"there is no NPU lowering for {overload}"
