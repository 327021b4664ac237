"""Networks that torchao's PT2E flow quantised: every bit is that of the integer semantics."""

import copy
import warnings

import pytest
import torch
from quantized_reference import reference
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)
from torchao.testing.pt2e._xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)

import mlir_npu


def unsigned_activations():
    return X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())


def signed_activations():
    config = get_symmetric_quantization_config(is_per_channel=True)
    return XNNPACKQuantizer().set_global(config)


class Residual(nn.Module):
    def __init__(self, taken: int, made: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(taken, made, 3, stride, 1, bias=False), nn.BatchNorm2d(made), nn.ReLU(),
            nn.Conv2d(made, made, 3, 1, 1, bias=False), nn.BatchNorm2d(made),
        )  # fmt: skip
        self.projection = nn.Sequential(
            nn.Conv2d(taken, made, 1, stride, bias=False), nn.BatchNorm2d(made)
        )

    def forward(self, x):
        return (self.body(x) + self.projection(x)).relu()


class Inverted(nn.Sequential):
    def __init__(self, taken: int, made: int, stride: int) -> None:
        wide = 3 * taken
        super().__init__(
            nn.Conv2d(taken, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, made, 1, bias=False), nn.BatchNorm2d(made),
        )  # fmt: skip
        self.is_residual = taken == made and stride == 1

    def forward(self, x):
        y = super().forward(x)
        return x + y if self.is_residual else y


def residual_network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1), Residual(16, 16, 1), Residual(16, 32, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def mobile_network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
        Inverted(16, 16, 1), Inverted(16, 24, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10),
    )  # fmt: skip


def quantised(network, quantizer, x):
    torch.manual_seed(0)
    model = network().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 2)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        prepared = prepare_pt2e(torch.export.export(copy.deepcopy(model), (x,)).module(), quantizer)
        for _ in range(3):
            prepared(torch.randn_like(x))
        return model, convert_pt2e(prepared)


@pytest.mark.parametrize("target", ["host", "small"])
@pytest.mark.parametrize("quantizer", [unsigned_activations, signed_activations])
@pytest.mark.parametrize("network", [residual_network, mobile_network])
def test_every_bit_is_that_of_the_integer_semantics(network, quantizer, target):
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    model, converted = quantised(network, quantizer(), x)
    explanation = mlir_npu.explain(converted, x, options={"target": target, "strict": True})
    with torch.no_grad():
        exact, floats = reference(converted, x), model(x)
    assert torch.equal(explanation.result, exact)
    assert explanation.regions == 1 and explanation.host_nodes == 0
    assert explanation.integer_macs == explanation.macs
    assert (explanation.result - floats).abs().max() < 0.15 * floats.abs().max()


def test_a_layer_is_within_a_step_of_pytorch_s_own_integer_representation():
    model, x = nn.Sequential(nn.Linear(20, 10)).eval(), torch.randn(4, 20)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
    with torch.no_grad():
        prepared = prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
        prepared(x)
        converted = convert_pt2e(copy.deepcopy(prepared))
        integers = convert_pt2e(prepared, use_reference_representation=True)
        assert "out_dtype" in integers.code
        expected = integers(x)
    explanation = mlir_npu.explain(converted, x, options={"min_region_macs": 0})
    assert explanation.integer_macs == 4 * 20 * 10
    *_, last = (n for n in converted.graph.nodes if "dequantize_per_tensor" in str(n.target))
    assert (explanation.result - expected).abs().max() < 1.01 * last.args[1]
