"""Sizes that change: one capture by Dynamo, and regions compiled for the sizes that come."""

import copy

import pytest
import torch
from dynamic_networks import Captures, compare_steps, network
from parity import assert_gradients_close, assert_same, check_inference, compile_model
from torch import nn

import mlir_npu
from mlir_npu.lowering.report import collect

SIZES = [(2, 18, 20), (3, 17, 13), (7, 16, 9), (2, 61, 16), (4, 128, 96), (2, 18, 20)]


# ---- one capture, right for all sizes -----------------------------------------------------------


@pytest.mark.parametrize("fallback", ["llvm", "inductor", "eager"])
def test_dynamic_true(fallback):
    """peers D7, D8, D11."""
    model, captures = network(), Captures(fallback=fallback)
    compiled = torch.compile(model, backend=captures, dynamic=True)
    with torch.no_grad(), collect() as reports:
        for batch, height, width in SIZES:
            x = torch.randn(batch, 3, height, width)
            assert_same(compiled(x), model(x))
    assert captures.count == 1
    assert len(reports) == len(set(SIZES)), "once for each set of sizes"
    assert all(part.engine == "npu" for report in reports for part in report.parts)


def test_size_one_is_a_capture_of_dynamos_own():
    """Dynamo takes sizes of 1 for constants, unless it is told not to."""
    for oblivious, expected in (False, 2), (True, 1):
        torch._dynamo.reset()
        model, captures = network(), Captures()
        compiled = torch.compile(model, backend=captures, dynamic=True)
        with (
            torch.fx.experimental._config.patch(backed_size_oblivious=oblivious),
            torch.no_grad(),
            collect() as reports,
        ):
            for batch in (5, 1, 3, 1):
                x = torch.randn(batch, 3, 16, 16)
                assert_same(compiled(x), model(x))
        assert captures.count == expected
        assert len(reports) == 3
        assert all(report.regions for report in reports)


@pytest.mark.parametrize("dims", [(0,), (2, 3), (0, 2, 3)])
def test_sizes_that_the_user_marks(dims):
    model, captures = network(), Captures()
    compiled = torch.compile(model, backend=captures, fullgraph=True)
    with torch.no_grad(), collect() as reports:
        for size in (2, 3, 11, 16):
            shape = [
                size + 16 if dim in dims else fixed for dim, fixed in enumerate((2, 3, 16, 16))
            ]
            x = torch.randn(shape)
            for dim in dims:
                torch._dynamo.mark_dynamic(x, dim)
            assert_same(compiled(x), model(x))
    assert captures.count == 1
    assert len(reports) == 4
    assert all(report.regions for report in reports)


def test_batch_marked_unbacked():
    model, captures = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()).eval(), Captures()
    compiled = torch.compile(model, backend=captures, fullgraph=True)
    with torch.no_grad(), collect() as reports:
        for batch in (4, 1, 3):
            x = torch.randn(batch, 3, 16, 16)
            torch._dynamo.decorators.mark_unbacked(x, 0)
            assert_same(compiled(x), model(x))
    assert captures.count == 1
    assert len(reports) == 3
    assert all(report.regions for report in reports)


@pytest.mark.parametrize("train", [False, True])
def test_a_size_that_changes_by_itself(train):
    """peers D10: Dynamo makes a size symbolic when it changes, and no more is captured."""
    model, captures = network().train(train), Captures()
    compiled = torch.compile(model, backend=captures)
    with collect() as reports, torch.set_grad_enabled(train):
        for batch in (2, 3, 4, 5, 6, 7, 3):
            x = torch.randn(batch, 3, 16, 16)
            assert_same(compiled(x).detach(), model(x).detach())
    assert captures.count == 2
    assert sum(report.kind != "backward" for report in reports) == 6
    assert all(report.regions for report in reports)


@pytest.mark.parametrize("channels_last", [False, True])
def test_training(channels_last):
    """peers D9."""
    model, captures = network().train(), Captures()
    compiled = torch.compile(model, backend=captures, dynamic=True)
    with collect() as reports:
        for batch, height, width in SIZES[:3]:
            x = torch.randn(batch, 3, height, width)
            if channels_last:
                x = x.to(memory_format=torch.channels_last)
            compare_steps(compiled, model, x)
    assert captures.count == 1
    assert [report.kind for report in reports] == ["forward", "backward"] * 3
    assert all(report.regions for report in reports)


def test_backward_of_sizes_computed_from_sizes():
    """peers D9: a reshape by a product of sizes, which the backward takes as numbers."""

    conv = nn.Conv2d(3, 4, 3, padding=1)

    def model(x):
        y = conv(x).relu()
        return y.reshape(y.shape[0] * y.shape[2], -1) * y.shape[1]

    compiled = torch.compile(model, backend="mlir_npu", dynamic=True)
    for batch in (2, 3, 5):
        x = torch.randn(batch, 3, 16, 12)
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        compiled(ours).square().sum().backward()
        model(theirs).square().sum().backward()
        assert_gradients_close(ours.grad, theirs.grad)


# ---- sizes and numbers in the program -----------------------------------------------------------


def test_numbers_that_change():
    """A number that Dynamo makes symbolic is no size: nothing is compiled for its values."""
    conv = nn.Conv2d(3, 4, 3).eval()
    for dynamic in (None, True):
        torch._dynamo.reset()
        compiled = torch.compile(
            lambda x, n: torch.relu(conv(x) * n), backend="mlir_npu", dynamic=dynamic
        )
        x = torch.randn(2, 3, 16, 16)
        with collect() as reports, torch.no_grad():
            for number in range(12):
                assert_same(compiled(x, number), torch.relu(conv(x) * number))
        assert len(reports) <= 4
        assert any(report.regions for report in reports)


@pytest.mark.parametrize("dynamic", [None, True])
def test_numbers_that_shapes_depend_on(dynamic):
    """Dynamo makes the second stride symbolic; each is compiled once, for the NPU."""
    conv = nn.Conv2d(3, 16, 3).eval()

    def model(x, stride):
        return torch.relu(nn.functional.conv2d(x, conv.weight, conv.bias, stride))

    compiled = torch.compile(model, backend="mlir_npu", dynamic=dynamic)
    x = torch.randn(1, 3, 16, 16)
    with collect() as reports, torch.no_grad():
        for stride in (3, 2, 4, 2, 3):
            assert_same(compiled(x, stride), model(x, stride))
    assert 3 <= len(reports) <= 4
    assert all(report.regions and not report.rejections for report in reports)


def test_sizes_used_as_numbers():
    """peers C8: a size computed in one part is an int in the next, and in results."""
    conv = nn.Conv2d(3, 4, 3).eval()

    def model(x):
        y = conv(x)
        return y + torch.arange(y.shape[-1]), y.shape[0] * 2, x.shape, y.sum() / y.numel()

    check_inference(model, torch.randn(2, 3, 9, 9))
    compiled = torch.compile(model, backend="mlir_npu", dynamic=True, fullgraph=True)
    with torch.no_grad():
        for batch, size in (2, 9), (3, 20):
            x = torch.randn(batch, 3, size, size)
            got, expected = compiled(x), model(x)
            assert_same(got, expected)
            assert type(got[1]) is int


def test_an_embedding_repeated_for_every_image():
    """peers D7: a class token is expanded to the batch."""

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.randn(1, 1, 8))
            self.conv = nn.Conv2d(3, 8, 4, stride=4)
            self.head = nn.Linear(8, 8)

        def forward(self, x):
            patches = self.conv(x).flatten(2).transpose(1, 2)
            tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1)
            return self.head(tokens)[:, 0]

    model, captures = Tokens().eval(), Captures()
    compiled = torch.compile(model, backend=captures, fullgraph=True)
    with torch.no_grad(), collect() as reports:
        for batch in (2, 3, 7):
            x = torch.randn(batch, 3, 32, 32)
            torch._dynamo.mark_dynamic(x, 0)
            assert_same(compiled(x), model(x))
    assert captures.count == 1
    assert all(report.regions for report in reports)


def test_checks_of_sizes():
    conv = nn.Conv2d(3, 4, 3, padding=1).eval()

    def model(x, n):
        length = n.item()
        torch._check(length >= 2)
        torch._check(length <= x.shape[-1])
        return conv(x).relu(), torch.ones(length) * x.shape[0]

    with torch._dynamo.config.patch(capture_scalar_outputs=True), torch.no_grad():
        compiled = torch.compile(model, backend="mlir_npu", fullgraph=True, dynamic=True)
        for batch, length in (2, 3), (3, 5), (3, 2):
            x, n = torch.randn(batch, 3, 16, 16), torch.tensor(length)
            assert_same(compiled(x, n), model(x, n))
        for length in (1, 17):
            with pytest.raises(RuntimeError, match="Expected cond to be True"):
                compiled(torch.randn(2, 3, 16, 16), torch.tensor(length))


# ---- what users see -----------------------------------------------------------------------------


def test_explain_says_where_a_dynamic_region_runs():
    x = torch.randn(4, 3, 16, 16)
    torch._dynamo.mark_dynamic(x, 0)
    explanation = mlir_npu.explain(network(), x)
    assert (explanation.regions, explanation.host_nodes) == (1, 0)
    (graph,) = explanation.graphs
    assert graph.sizes == "args[0].size()[0] = 4"
    assert "inference, as compiled for args[0].size()[0] = 4" in str(explanation)
    assert "float32[4, 3, 16, 16]" in explanation.source


def test_weights_may_change_under_all_sizes():
    model = network()
    compiled = compile_model(model)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for _ in range(2):
            for batch in (2, 3, 4):
                x = torch.randn(batch, 3, 16, 16)
                assert_same(compiled(x), other(x))
            for ours, theirs in zip(model.parameters(), other.parameters()):
                theirs.add_(torch.randn_like(theirs))
                ours.copy_(theirs)


@pytest.mark.parametrize("mode", ["no_grad", "training"])
def test_strides_that_change_where_the_sizes_do_not(mode):
    """Dynamo makes the stride of the dimension of size 1 a symbol, and a guard fixes it."""
    model = nn.Conv3d(1, 7, 1, padding=(0, 1, 0), padding_mode="replicate").eval()
    compiled = compile_model(model, min_region_macs=0, strict=True)
    images = torch.randn(2, 1, 2, 5, 8)
    with torch.set_grad_enabled(mode == "training"):
        for strides in ((80, 1, 40, 8, 1), (80, 80, 40, 8, 1)):
            x = images.as_strided(images.shape, strides)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
