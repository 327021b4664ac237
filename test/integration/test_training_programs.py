"""capture(model, *inputs, train=True): forward and backward over all graph breaks."""

import copy

import pytest
import torch
from parity import assert_gradients_close, check_step
from program_steps import check_program, image, line_of
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import mlir_npu
from mlir_npu.errors import MismatchError


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu()
        torch._dynamo.graph_break()
        return (x + self.norm2(self.conv2(y))).relu()


class SmallResNet(nn.Module):
    """Two graph breaks; what goes in to a block is used before and after one."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def test_a_residual_network_with_two_breaks():
    model = SmallResNet()
    program = check_program(model, image())
    assert program.explanation.breaks
    assert len(program.forward_units) == len(program.backward_units) >= 3
    assert program.explanation.regions >= 6


def test_a_program_trains():
    torch.manual_seed(0)
    ours = SmallResNet()
    theirs = copy.deepcopy(ours)
    x, labels = image(8, 3, 16, 16, grad=False), torch.arange(8) % 5
    program = mlir_npu.capture(ours, x, train=True)
    losses = []
    for run, model in ((program, ours), (theirs, theirs)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        found = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), labels)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0][-1] < losses[0][0] * 0.9
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-2, atol=1e-3)


class Twins(nn.Module):
    """Everything that crosses the break has one shape and dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(3, 3, 3, padding=1)
        self.right = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        a = self.left(x)
        b = self.right(x)
        torch._dynamo.graph_break()
        c = (a * 2 - b).relu()
        torch._dynamo.graph_break()
        return b.sigmoid() + c, a - c.square()


def here(text: str) -> str:
    return f"test_training_programs.py:{line_of(__file__, text)}"


def test_tangents_of_one_shape_go_where_they_belong():
    program = check_program(Twins(), image())
    last, middle, first = program.backward_units
    assert [tangent.label for tangent in first.tangents] == [
        f"gradient of output left, {here('a = self.left(x)')}",
        f"gradient of output right, {here('b = self.right(x)')}",
    ]
    (tangent,) = middle.tangents
    assert here("c = (a * 2 - b).relu()") in tangent.label
    assert len(last.tangents) == 2
    for label in (value.label for unit in program.backward_units for value in unit.tangents):
        assert f"# {label}" in program.source


class Results(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x, z):
        y = self.conv(x).relu()
        torch._dynamo.graph_break()
        first = y[0]
        return {
            "sum": y.sum((2, 3)),
            "input": z,
            "view of input": z.t(),
            "twice": (y, y),
            "views": [first, y.flatten(1), None, 3],
            "parameter": self.conv.weight,
        }


def test_results_that_are_inputs_views_duplicates_and_none():
    model = Results()
    x, z = image(), torch.randn(4, 5, requires_grad=True)
    program = check_program(model, x, z)
    found = program(x, z)
    assert found["input"] is z
    assert found["parameter"] is model.conv.weight
    assert found["twice"][0] is found["twice"][1]
    assert found["view of input"].data_ptr() == z.data_ptr()
    y = found["twice"][0]
    assert found["views"][0].data_ptr() == found["views"][1].data_ptr() == y.data_ptr()


def test_views_without_what_they_are_views_of():
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x):
            left, right = self.conv(x).chunk(2, 1)
            torch._dynamo.graph_break()
            return left.sin() + right, left, right.expand(3, *right.shape)

    program = check_program(Halves(), image())
    left, repeated = program(image())[1:]
    assert left.untyped_storage().data_ptr() == repeated.untyped_storage().data_ptr()


class Dropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y = F.dropout(self.conv(x), 0.5)
        torch._dynamo.graph_break()
        return F.dropout(y.relu(), 0.3)


def test_dropout_draws_what_eager_draws():
    model = Dropout()
    theirs = copy.deepcopy(model)
    torch.manual_seed(3)
    program = mlir_npu.capture(model, image(), train=True)
    after = torch.randn(3)
    torch.manual_seed(3)
    image()
    torch.testing.assert_close(after, torch.randn(3), rtol=0, atol=0)
    x, expected = image(), None
    other = x.detach().clone().requires_grad_()
    torch.manual_seed(5)
    actual = program(x)
    torch.manual_seed(5)
    expected = theirs(other)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    actual.square().sum().backward()
    expected.square().sum().backward()
    assert_gradients_close(x.grad, other.grad)


class RecomputedDropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(0.4), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Conv2d(4, 4, 3)

    def forward(self, x):
        y = checkpoint(self.block, x, use_reentrant=False)
        torch._dynamo.graph_break()
        return checkpoint(F.dropout, self.head(y), use_reentrant=False), y


class Seeded(nn.Module):
    """A call with the same random numbers as another."""

    def __init__(self, call) -> None:
        super().__init__()
        self.call = call

    def forward(self, x):
        torch.manual_seed(5)
        return self.call(x)


def test_a_backward_that_recomputes_draws_the_same_numbers(tmp_path):
    model = RecomputedDropout()
    theirs = copy.deepcopy(model)
    captured = mlir_npu.capture(model, image(), train=True)
    captured.save(tmp_path, weights=False)
    for program in captured, mlir_npu.load(tmp_path, dict(model.named_parameters())):
        x = image()
        other = copy.deepcopy(x)
        check_step(Seeded(program), model, Seeded(theirs), (x,), (other,))


def test_what_is_frozen_or_unused_gets_no_gradient():
    model = SmallResNet()
    model.unused = nn.Linear(2, 2)
    model.stem.weight.requires_grad_(False)
    check_program(model, image(grad=False))


def test_weights_may_be_replaced():
    model = SmallResNet()
    program = mlir_npu.capture(model, image(grad=False), train=True)
    x = image(grad=False)
    program(x).sum().backward()
    model.head.weight = nn.Parameter(torch.zeros_like(model.head.weight))
    torch.testing.assert_close(program(x), model.head.bias.expand(2, 5), rtol=0, atol=1e-6)
    model.head.weight = nn.Parameter(torch.zeros(5, 8, dtype=torch.float64))
    with pytest.raises(MismatchError, match="head.weight"):
        program(x)


def test_calls_that_do_not_fit():
    model = SmallResNet()
    program = mlir_npu.capture(model, image(grad=False), train=True)
    with pytest.raises(MismatchError, match="requires a gradient"):
        program(image())
    with pytest.raises(MismatchError, match=r"float32\[2, 3, 16, 16\]"):
        program(image(1, 3, 16, 16, grad=False))
    model.eval()
    with pytest.raises(MismatchError, match=r"model\.training is False"):
        program(image(grad=False))


def test_modules_and_ties_are_those_of_the_capture():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = (nn.Linear(8, 8) for _ in range(3))
            self.second.weight = self.first.weight

        def forward(self, x):
            y = self.second(self.first(x).relu())
            torch._dynamo.graph_break()
            return self.third(y)

    model = Model()
    x = torch.randn(4, 8)
    program = mlir_npu.capture(model, x, train=True)
    third, model.third = model.third, nn.Linear(8, 8)
    with pytest.raises(MismatchError, match="module third was replaced"):
        program(x)
    model.third = third
    torch.testing.assert_close(program(x), model(x))
    model.second.weight = nn.Parameter(torch.zeros(8, 8))
    with pytest.raises(MismatchError, match=r"first\.weight and second\.weight were one tensor"):
        program(x)


def test_gradients_of_gradients_are_an_error():
    """A penalty on gradients would be a constant, and training silently wrong."""
    model = SmallResNet()
    program = mlir_npu.capture(model, image(), train=True)
    x = image()
    (gradient,) = torch.autograd.grad(program(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.square().sum().backward()


def test_gradients_add_up_and_a_graph_may_be_kept():
    model = SmallResNet()
    program = mlir_npu.capture(model, image(grad=False), train=True)
    loss = program(image(grad=False)).sum()
    loss.backward(retain_graph=True)
    once = model.stem.weight.grad.clone()
    loss.backward()
    torch.testing.assert_close(model.stem.weight.grad, once * 2)
    with torch.no_grad():
        assert not program(image(grad=False)).requires_grad


def test_functions_over_modules():
    first, second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 3)

    def model(x):
        y = first(x).relu()
        torch._dynamo.graph_break()
        return second(y)

    x = image()
    program = mlir_npu.capture(model, x, train=True)
    other = x.detach().clone().requires_grad_()
    program(x).square().sum().backward()
    gradient, first.weight.grad = first.weight.grad, None
    model(other).square().sum().backward()
    assert_gradients_close([x.grad, gradient], [other.grad, first.weight.grad])
    assert "first.weight" in {value.source for value in program.plan.values.values()}
