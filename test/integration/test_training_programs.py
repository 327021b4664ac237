"""capture(model, *inputs, train=True): forward and backward over all graph breaks."""

import copy

import pytest
import torch
from parity import check_step
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import mlir_npu
from mlir_npu.errors import CaptureError, MismatchError


def image(*shape: int, grad: bool = True) -> torch.Tensor:
    return torch.randn(shape or (2, 3, 16, 16)).requires_grad_(grad)


def check_program(model: nn.Module, *inputs: torch.Tensor, steps: int = 2):
    """The program's steps are eager's, on other inputs than those of the capture."""
    theirs = copy.deepcopy(model)
    program = mlir_npu.capture(model, *copy.deepcopy(inputs), train=True)
    for ours, other in zip(model.state_dict().values(), theirs.state_dict().values()):
        torch.testing.assert_close(ours, other, rtol=0, atol=0)  # capturing trains nothing
    for _ in range(steps):
        given = tuple(torch.randn_like(x).requires_grad_(x.requires_grad) for x in inputs)
        check_step(program, model, theirs, given, copy.deepcopy(given))
    return program


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


def here(text: str) -> str:
    return f"test_training_programs.py:{line_of(text)}"


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)


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
    torch.testing.assert_close(x.grad, other.grad, rtol=1e-3, atol=1e-4)


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


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y = self.conv(x)
        if x.mean() > 0:
            y = y * 2
        if x.max().item() > 5:
            y = y + 1
        print("mean", y.mean().item())
        return y


def test_branches_are_checked_and_prints_reported():
    model = Branches()
    theirs = copy.deepcopy(model)
    program = mlir_npu.capture(model, image() * 0.5 + 1, train=True)
    x = (torch.randn(2, 3, 16, 16) * 0.5 + 1).requires_grad_()
    assert x.max() < 5
    check_step(program, model, theirs, (x,), (x.detach().clone().requires_grad_(),))
    with pytest.raises(MismatchError, match=r"test_training_programs.py:\d+ \(if x.mean\(\) > 0"):
        program(x - 2)
    with pytest.raises(MismatchError, match=r"if x.max\(\).item\(\) > 5"):
        program(x + 5)
    printed = [one for one in program.python_between if "print" in (one.line or "")]
    assert printed and all("not" in one.effect for one in printed)
    assert printed[0].location == f"{__file__}:{line_of(printed[0].line)}"


def test_a_number_that_a_later_graph_was_made_for():
    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = conv(x)
        n = y.max().item()
        print(n)
        return y / n

    x = image(grad=False)
    compiled = torch.compile(model, backend="eager")
    compiled(x)
    program = mlir_npu.capture(model, x, train=True)
    torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(MismatchError, match=r"\(n = y.max\(\).item\(\)\): the value is"):
        program(x * 2)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(x)  # capturing throws away nothing that others compiled


def test_numbers_of_loops():
    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = conv(x)
        for _ in range(int(x.abs().max().item()) + 1):
            y = y * 2
        return y

    x = torch.zeros(1, 3, 8, 8)
    x[0, 0, 0, 0] = 2.5
    program = mlir_npu.capture(model, x, train=True)
    torch.testing.assert_close(program(x * 1.1), model(x * 1.1), rtol=1e-4, atol=1e-5)
    with pytest.raises(MismatchError, match="for _ in range"):
        program(x * 2)


def test_numbers_of_python_are_reported():
    conv = nn.Conv2d(3, 4, 3)

    @torch.compiler.disable
    def scaled(x):
        return x * 0.5 * len(str(x.shape)) ** 0.5

    program = mlir_npu.capture(lambda x: scaled(conv(x)).sin(), image(), train=True)
    told = [one for one in program.python_between if "which Python computed" in one.reason]
    assert [one.line for one in told] == ["return x * 0.5 * len(str(x.shape)) ** 0.5"]


def test_numpy_in_between_is_an_error_that_names_the_line():
    @torch.compiler.disable
    def through_numpy(x):
        return torch.from_numpy(x.detach().numpy() * 2)

    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = through_numpy(conv(x))
        return y.relu()

    with pytest.raises(CaptureError) as caught:
        mlir_npu.capture(model, image(), train=True)
    assert "unknown origin" in caught.value.reason
    assert caught.value.line == "return y.relu()"


def test_sizes_that_depend_on_data_are_an_error_that_names_the_line():
    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = conv(x)
        return y[y > 0]

    with pytest.raises(CaptureError) as caught:
        mlir_npu.capture(model, image(), train=True)
    assert "depends on the contents" in caught.value.reason
    assert caught.value.line == "return y[y > 0]"


class Tripled(torch.autograd.Function):
    """With a gradient that its forward does not tell."""

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7


def test_gradients_that_python_defines():
    class Compiled(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x):
            y = self.conv(x)
            torch._dynamo.graph_break()
            return Tripled.apply(y)

    check_program(Compiled(), image())
    conv, uncompiled = nn.Conv2d(3, 4, 3), torch.compiler.disable(Tripled.apply)
    with pytest.raises(CaptureError, match="defined by Python") as caught:
        mlir_npu.capture(lambda x: uncompiled(conv(x)).sin(), image(), train=True)
    assert caught.value.line == "return x * 3"


class Eager(nn.Module):
    """A break in a loop with a try: Dynamo leaves the whole function to Python."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        for _ in range(2):
            try:
                x = F.relu(self.conv(x)) + x.mean((2, 3), keepdim=True)
                torch._dynamo.graph_break()
            finally:
                x = x * 0.5
        with torch.no_grad():
            scale = x.abs().mean() + 1
        values, _ = x.max(dim=1)
        return x / scale, values


def test_functions_that_dynamo_does_not_compile():
    check_program(Eager(), image())


def test_in_place_detach_and_no_grad():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x):
            y = self.conv(x)
            with torch.no_grad():
                self.seen.mul_(0.9).add_(y.mean((0, 2, 3)))
            y = y.clone()
            y[:, 0] = 0
            torch._dynamo.graph_break()
            y = y.mul_(2)
            return y * self.seen[:, None, None], y.detach()

    check_program(Mixed(), image())


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
    torch.testing.assert_close(x.grad, other.grad, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(gradient, first.weight.grad, rtol=1e-3, atol=1e-3)
    assert "first.weight" in {value.source for value in program.plan.values.values()}


def test_replaced_buffers_are_an_error():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.register_buffer("count", torch.zeros(()))
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            torch._dynamo.graph_break()
            self.count = self.count * 2
            return self.conv(x)

    model = Counter()
    before = model.count
    with pytest.raises(CaptureError, match="count"):
        mlir_npu.capture(model, image(), train=True)
    assert model.count is before and model.calls == 0


def test_attributes_that_change_are_reported():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return self.conv(x)

    program = mlir_npu.capture(Counter(), image(), train=True)
    assert any("calls" in one.reason for one in program.python_between)
