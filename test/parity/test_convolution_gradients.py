"""Gradients of every kind of convolution: small integers exactly, others as close to float64 as
sums in float32 are."""

import itertools
import zlib

import pytest
import torch
from torch import nn

from mlir_npu.lowering.report import collect

aten = torch.ops.aten
BATCH, LINE, IMAGE = 2, (11,), (9, 10)
PER_GRAPH = 12  # one compilation for so many convolutions
EPSILON = torch.finfo(torch.float32).eps
ROUNDINGS = 16  # of a sum of products, in units of the sum of their absolute values


def convolutions():
    """(spatial rank, kernel, stride, dilation, padding, groups, transposed, output padding)"""
    image_kernels = [(1, 1), (3, 3), (2, 3), (4, 1)]
    for kernel, stride, dilation, padding, groups, transposed in itertools.product(
        image_kernels, (1, 2, 3), (1, 2), (0, 1), (1, 2, 4), (False, True)
    ):
        more = (stride - 1) // 2 if transposed else 0
        yield (
            2,
            kernel,
            (stride, 3 - min(stride, 2)),
            (dilation, 1),
            padding,
            groups,
            transposed,
            more,
        )
    for kernel, stride, dilation, padding, groups, transposed in itertools.product(
        (1, 3, 4), (1, 2, 3), (1, 2), (0, 2), (1, 2, 4), (False, True)
    ):
        more = min(1, max(stride, dilation) - 1) if transposed else 0
        yield 1, (kernel,), (stride,), (dilation,), padding, groups, transposed, more


def valid(case):
    rank, kernel, stride, dilation, padding, groups, transposed, more = case
    strictly = all(more < max(s, d) for s, d in zip(stride, dilation)) or not more
    return strictly and all(padding <= d * (k - 1) for k, d in zip(kernel, dilation))


def graphs():
    """A hash, not the order of the product, says what is compiled together: families mix."""
    cases = sorted(filter(valid, convolutions()), key=lambda case: zlib.crc32(repr(case).encode()))
    return [cases[start : start + PER_GRAPH] for start in range(0, len(cases), PER_GRAPH)]


def tensors_of(case, make):
    rank, kernel, stride, dilation, padding, groups, transposed, more = case
    inputs, outputs = (8, 4) if transposed else (4, 8)
    weight = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
    x = make(BATCH, inputs, *(LINE if rank == 1 else IMAGE))
    weight = make(*weight, *kernel)
    attributes = list(stride), [padding] * rank, list(dilation), transposed, [more] * rank, groups
    out = aten.convolution(x, weight, None, *attributes)
    return make(*out.shape), x, weight, attributes


def gradients(tensors, attributes):
    results = []
    for (grad, x, weight), rest in zip(tensors, attributes, strict=True):
        results += aten.convolution_backward(
            grad, x, weight, [grad.shape[1]], *rest, [True, True, True]
        )
    return results


def on_npu(tensors, attributes):
    torch._dynamo.reset()
    with collect() as reports, torch.no_grad():
        compiled = torch.compile(gradients, backend="mlir_npu", options={"min_region_macs": 0})
        results = compiled(tensors, attributes)
    (report,) = reports
    assert [part.place for part in report.parts] == ["npu"]
    return results


GRAPHS = graphs()
QUICK = range(2)


@pytest.mark.parametrize(
    "number",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in range(len(GRAPHS))],
)
def test_gradients_of_integers_are_exact(number):
    numbers = torch.Generator().manual_seed(number)

    def integers(*shape):
        return torch.randint(-3, 4, shape, generator=numbers).float()

    made = [tensors_of(case, integers) for case in GRAPHS[number]]
    tensors, attributes = [m[:3] for m in made], [m[3] for m in made]
    for index, (ours, theirs) in enumerate(
        zip(on_npu(tensors, attributes), gradients(tensors, attributes), strict=True)
    ):
        assert torch.equal(ours, theirs), (GRAPHS[number][index // 3], "xwb"[index % 3])


def test_gradients_are_as_close_to_float64_as_sums_are():
    numbers = torch.Generator().manual_seed(0)
    cases = GRAPHS[2]
    made = [tensors_of(case, lambda *s: torch.randn(s, generator=numbers)) for case in cases]
    tensors, attributes = [m[:3] for m in made], [m[3] for m in made]
    doubles = [[t.double() for t in group] for group in tensors]
    exact = gradients(doubles, attributes)
    scale = gradients([[t.abs() for t in group] for group in doubles], attributes)
    for ours, true, size in zip(on_npu(tensors, attributes), exact, scale, strict=True):
        assert ((ours - true).abs() <= ROUNDINGS * EPSILON * size).all()


@pytest.mark.parametrize(
    "mask", [m for m in itertools.product([True, False], repeat=3) if any(m)], ids=str
)
def test_gradients_that_nobody_wants(mask):
    """Of a convolution whose input, weight and bias need gradients or not."""
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(4, 8, 3, padding=1)
    conv.weight.requires_grad_(mask[1])
    conv.bias.requires_grad_(mask[2])
    x = torch.randn(2, 4, 8, 8, requires_grad=mask[0])
    wanted = [t for t, flag in zip((x, conv.weight, conv.bias), mask) if flag]
    compiled = torch.compile(conv, backend="mlir_npu", options={"min_region_macs": 0})
    ours = torch.autograd.grad(compiled(x).square().sum(), wanted)
    theirs = torch.autograd.grad(conv(x).square().sum(), wanted)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "conv",
    [
        torch.nn.Conv3d(2, 4, 3, stride=(2, 1, 1), padding=1),
        torch.nn.ConvTranspose3d(2, 4, 3, stride=2, output_padding=1),
    ],
    ids=str,
)
def test_gradients_of_3d_convolutions_run_on_the_npu(conv):
    x = torch.randn(1, 2, 5, 6, 7, requires_grad=True)
    wanted = x, conv.weight, conv.bias
    with collect() as reports:
        ours = torch.autograd.grad(
            torch.compile(conv, backend="mlir_npu")(x).square().sum(), wanted
        )
    assert [part.place for report in reports for part in report.parts] == ["npu", "npu"]
    theirs = torch.autograd.grad(conv(x).square().sum(), wanted)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_padding_in_words(rank, padding):
    """PyTorch then gives one number for all dimensions."""
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1]
    layer = kind(4, 6, 3, padding=padding, groups=2)
    x = torch.randn(2, 4, *(7, 6, 5)[:rank], requires_grad=True)
    compiled = torch.compile(
        layer, backend="mlir_npu", options={"min_region_macs": 0, "strict": True}
    )
    targets = [x, *layer.parameters()]
    ours = torch.autograd.grad(compiled(x).square().sum(), targets)
    torch.testing.assert_close(
        ours, torch.autograd.grad(layer(x).square().sum(), targets), rtol=1e-4, atol=1e-4
    )
