"""Faults that users of other backends of this kind reported, and the kind of each.

Those with a home of their own (strides, outputs, weights, dynamic shapes, caches, threads) are
tested there; "peers" and a number says which.
"""

import copy
import gc
import os
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch
from parity import (
    assert_gradients_close,
    assert_same,
    check_inference,
    check_training,
    compile_model,
)
from torch import nn

import mlir_npu
from mlir_npu.lowering import compile_graph
from mlir_npu.lowering.report import collect
from mlir_npu.runtime.object_cache import VARIABLE


def convolution(inputs: int = 4, outputs: int = 4, size: int = 3, **options) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, padding="same", **options).eval()


def regions_of(model, *inputs, **options) -> int:
    with collect() as reports:
        check_inference(model, *inputs, options=options)
    return sum(len(report.regions) for report in reports)


# ---- partitions ---------------------------------------------------------------------------------


def crossed_branches(count: int, first, second):
    """Branches of convolution, host op, convolution, each of which feeds the next one's end."""

    def model(x):
        carried, results = x, []
        for index in range(count):
            start = first(x + index)
            middle = torch.sin(start) if index % 2 else torch.cumsum(start, 1)
            end = second(middle + carried)
            carried = end if index % 2 else start
            results.append(end)
        return sum(results)

    return model


@pytest.mark.parametrize("count", [2, 3, 5])
def test_merged_regions_close_no_loop(count):
    """peers P1."""
    model = crossed_branches(count, convolution(), convolution())
    assert regions_of(model, torch.randn(1, 4, 16, 16)) >= 2


@pytest.mark.parametrize("op", ["relu", "add", "convolution", "mul", "mean"])
@pytest.mark.parametrize("minimum", [0, 4096, 200_000])
def test_regions_stay_valid_when_calls_are_taken_out(op, minimum):
    """peers P2: what bridges a large region goes to the host, as the user or its size asks."""
    first, second = convolution(), convolution()

    def model(x):
        y = first(x)
        bridge = torch.relu(y) * 2 + y.mean((2, 3), keepdim=True)
        return second(bridge) + y, torch.relu(second(y) - bridge)

    check_inference(
        model, torch.randn(1, 4, 16, 16), options={"host_ops": [op], "min_region_macs": minimum}
    )


@pytest.mark.parametrize("between", [torch.sin, lambda y: y.sort(1).values, lambda y: y.cumsum(2)])
def test_a_host_op_between_convolutions(between):
    """peers P4."""
    first, second = convolution(), convolution()
    assert regions_of(lambda x: second(between(first(x))), torch.randn(1, 4, 16, 16)) == 2


def test_inputs_in_another_order_than_the_call_takes_them():
    """peers P8."""

    def model(bias, scale, x, weight):
        y = nn.functional.conv2d(x * scale, weight, bias, padding=1)
        return nn.functional.conv2d(y, weight, bias) - bias.view(-1, 1, 1)

    shapes = ([4], [4, 1, 1], [1, 4, 16, 16], [4, 4, 3, 3])
    assert regions_of(model, *map(torch.randn, shapes)) == 1


def test_every_process_makes_the_same_parts(tmp_path):
    """peers P9: the same source and the same keys of the cache, whatever strings hash to."""
    program = textwrap.dedent("""
        import torch, mlir_npu
        from torch import nn
        torch.manual_seed(0)
        first, second = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        def model(x):
            return second(torch.sin(first(x)) + first(x)).relu(), first(x).cumsum(1)
        print(mlir_npu.explain(model, torch.randn(1, 4, 16, 16)).source)
        """)

    def run(seed: str) -> tuple[str, set[str]]:
        folder = tmp_path / seed
        environment = os.environ | {VARIABLE: str(folder), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout, {path.name for path in folder.rglob("*") if path.is_file()}

    source, entries = run("1")
    assert "npu_0" in source
    assert entries
    assert run("2") == (source, entries)


def test_compiling_does_not_change_the_graph(monkeypatch):
    """peers P14: neither where all goes well nor where the last step fails."""
    texts = []
    partition = compile_graph.partition

    def watched(graph, options):
        before = graph.print_readable(print_output=False)
        plan = partition(graph, options)
        texts.append((before, graph))
        return plan

    monkeypatch.setattr(compile_graph, "partition", watched)
    model = nn.Sequential(convolution(), nn.BatchNorm2d(4), nn.ReLU()).eval()
    x = torch.randn(1, 4, 16, 16)
    check_inference(model, x)
    with monkeypatch.context() as broken:

        def fail(*_):
            raise RuntimeError("the last step fails")

        broken.setattr(compile_graph, "compile_region", fail)
        torch._dynamo.reset()
        check_inference(model, x)
    assert len(texts) == 2
    for before, graph in texts:
        assert graph.print_readable(print_output=False) == before


def test_blocks_too_small_to_pay_stay_together_on_the_host():
    """peers T5."""
    layers = [layer for _ in range(6) for layer in (nn.Conv2d(2, 2, 1), nn.Softsign())]
    model = nn.Sequential(*layers).eval()
    with collect() as reports:
        check_inference(model, torch.randn(1, 2, 4, 4))
    (report,) = reports
    assert [part.place for part in report.parts] == ["host"]


# ---- training -----------------------------------------------------------------------------------


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 16, 4, stride=4)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x).flatten(2).transpose(1, 2))[:, 0])


def test_a_training_step_of_a_transformer():
    """peers C11."""
    check_training(Transformer(), torch.randn(2, 3, 16, 16))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


@pytest.mark.parametrize("inside", [False, True])
def test_gradients_pass_functions_of_the_user(inside):
    """peers C12: what is compiled has its formula for gradients wherever it stands."""
    model = nn.Sequential(convolution(), nn.ReLU(), convolution()).train()
    x = torch.randn(1, 4, 16, 16)

    def step(inner, outer):
        given = x.clone().requires_grad_()
        outer(lambda given: Doubled.apply(inner(Doubled.apply(given))))(given).sum().backward()
        return given.grad

    def same(function):
        return function

    expected = step(model, same)
    ours = step(model, compile_model) if inside else step(compile_model(model), same)
    assert_gradients_close(ours, expected)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_strided_pointwise_convolutions(stride, groups):
    """peers V10."""
    model = nn.Conv2d(4, 6, 1, stride=stride, groups=groups)
    check_training(model, torch.randn(2, 4, 13, 16, requires_grad=True))


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
@pytest.mark.parametrize("weight_order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_gradients_of_unusual_layouts(order, weight_order):
    """peers V11: images and filters of one dimension whose memory is in any order."""

    def laid_out(shape, order):
        tensor = torch.randn([shape[dim] for dim in order])
        return tensor.permute([order.index(dim) for dim in range(3)]).requires_grad_()

    x, weight = laid_out((2, 4, 50), order), laid_out((6, 4, 5), weight_order)
    operation = nn.functional.conv1d
    compiled = compile_model(operation)
    gradient = torch.randn(2, 6, 46)
    ours = torch.autograd.grad(compiled(x, weight), (x, weight), gradient)
    exact = operation(x.double(), weight.double())
    expected = torch.autograd.grad(exact, (x, weight), gradient.double())
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


# ---- weights, entry points, memory, processes ---------------------------------------------------


def test_frozen_weights_serve_every_shape():
    """peers M9."""
    model = nn.Sequential(convolution(), nn.BatchNorm2d(4), nn.ReLU()).eval().requires_grad_(False)
    compiled = compile_model(model)
    for batch in (8, 1, 3):
        x = torch.randn(batch, 4, 16, 16)
        assert_same(compiled(x), model(x))


@pytest.mark.parametrize("order", [(0, 1, 3, 2), (3, 2, 1, 0), (0, 2, 3, 1)])
def test_all_entry_points_take_all_strides(order):
    """peers S10."""
    model = nn.Sequential(convolution(16, 4), nn.ReLU()).eval()
    x = torch.randn(16, 16, 16, 16).permute(order)
    with torch.no_grad():
        expected = model(x)
        assert_same(compile_model(model)(x), expected)
        assert_same(mlir_npu.capture(model, x)(x), expected)
        assert_same(mlir_npu.explain(model, x).result, expected)


def test_dead_models_leave_nothing_behind():
    """peers L1: neither weights, nor constants of graphs, nor what was made of them."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = convolution()
            self.table = torch.randn(4, 16, 16)  # no buffer: Dynamo takes it in all the same

        def forward(self, x):
            return torch.relu(self.conv(x) + self.table) * torch.arange(16.0)

    alive = []
    for _ in range(3):
        model = Model().eval()
        check_inference(model, torch.randn(1, 4, 16, 16))
        alive += [weakref.ref(model.conv.weight), weakref.ref(model.table)]
        del model
        torch._dynamo.reset()
        gc.collect()
    assert not [reference for reference in alive if reference() is not None]


def test_processes_fill_one_cache_at_the_same_time(tmp_path):
    """peers K4, K5."""
    program = textwrap.dedent("""
        import sys, torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval()
        x = torch.randn(1, 4, 20, 20)
        with torch.no_grad():
            y = torch.compile(model, backend="mlir_npu", options={"strict": True})(x)
            torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-5)
        print("torch_mlir" in sys.modules)
        """)

    def start() -> subprocess.Popen:
        environment = os.environ | {VARIABLE: str(tmp_path)}
        command = [sys.executable, "-c", program]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    for process in [start() for _ in range(3)]:
        _, said = process.communicate()
        assert process.returncode == 0, said
        assert "mlir_npu" not in said
    assert any(tmp_path.rglob("*")), "entries are where they were asked for"
    loaded, said = start().communicate()
    assert loaded.strip() == "False", said


def test_two_checkpoints_of_one_architecture():
    """peers K3: the second takes the code of the first, and its own weights."""
    model = nn.Sequential(convolution(), nn.BatchNorm2d(4), nn.ReLU()).eval()
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.normal_()
    x = torch.randn(1, 4, 16, 16)
    for network in (model, other, model):
        torch._dynamo.reset()
        check_inference(network, x)
